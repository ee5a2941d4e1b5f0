/** A zip archive of one file, as a record's file is: deflated by the browser's own stream. */

function crc32(bytes: Uint8Array): number {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) {
      crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
    }
  }
  return ~crc >>> 0;
}

/** Numbers as little-endian bytes: `[value, bytes]` each. */
function packed(...fields: readonly (readonly [number, number])[]): Uint8Array<ArrayBuffer> {
  const out: number[] = [];
  for (const [value, size] of fields) {
    for (let at = 0; at < size; at += 1) {
      out.push(Math.floor(value / 2 ** (8 * at)) % 256);
    }
  }
  return new Uint8Array(out);
}

/** The archive that holds `text` under a name of plain letters (APPNOTE.TXT 4.3, no data descriptor). */
export async function zipped(name: string, text: string): Promise<Blob> {
  const raw = new TextEncoder().encode(text);
  const stream = new Blob([raw]).stream().pipeThrough(new CompressionStream('deflate-raw'));
  const body = new Uint8Array(await new Response(stream).arrayBuffer());
  const title = new TextEncoder().encode(name);
  const deflate = 8;
  // Version, flags, method, time and date (1980), checksum, sizes, lengths of name and extra: in both headers.
  const facts = [[20, 2], [0, 2], [deflate, 2], [0, 2], [33, 2], [crc32(raw), 4], [body.length, 4], [raw.length, 4], [title.length, 2], [0, 2]] as const;
  const local = packed([0x04034b50, 4], ...facts);
  const central = packed([0x02014b50, 4], [20, 2], ...facts, [0, 2], [0, 2], [0, 2], [0, 4], [0, 4]);
  const start = local.length + title.length + body.length;
  const end = packed([0x06054b50, 4], [0, 2], [0, 2], [1, 2], [1, 2], [central.length + title.length, 4], [start, 4], [0, 2]);
  return new Blob([local, title, body, central, title, end], { type: 'application/zip' });
}
