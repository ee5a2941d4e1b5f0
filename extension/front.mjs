// Builds the bench as one module without imports: the script of the widget, and of pages that stand alone.

import { build } from 'esbuild';

const out = process.argv[2] ?? '../tilebench/workbench/front/bench.js';
await build({
  entryPoints: ['src/bench/widget.ts'],
  outfile: out,
  bundle: true,
  format: 'esm',
  target: 'es2022',
  // Names too: every live bench carries the script.
  minifyIdentifiers: true,
  minifySyntax: true,
  minifyWhitespace: true,
  charset: 'utf8',
  legalComments: 'none',
  banner: { js: '// Built by `npm run front` from extension/src/bench; change it there.' }
});
