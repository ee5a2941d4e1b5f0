// The module of each live bench: it takes the front end from the page, where another bench has brought it already.
// A page keeps every module for as long as it is open; the whole front end with each run of a cell would fill it.

const HERE = Symbol.for('tilebench.bench __VERSION__');

async function taken(text) {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/javascript' }));
  try {
    return await import(url);
  } finally {
    URL.revokeObjectURL(url);
  }
}

// The kernel answers when it is idle: a front end without models that refer to each other waits for that.
function asked(model) {
  return new Promise(done => {
    const heard = message => {
      if (message?.kind === 'script') {
        model.off('msg:custom', heard);
        done(message.text);
      }
    };
    model.on('msg:custom', heard);
    model.send({ kind: 'script' });
  });
}

async function text(model, host) {
  try {
    const name = model.get('script');
    const shared = host?.getModel
      ? await host.getModel(name)
      : await model.widget_manager.get_model(name.replace('IPY_MODEL_', ''));
    const found = shared.get('text');
    if (found) {
      return found;
    }
  } catch {
    // Its model is not here, or its kernel is another one.
  }
  return asked(model);
}

// How many milliseconds a bench waits for the front end that another one asks for before it asks too.
const PATIENCE = 1000;

// The first text that comes is taken, once: views of one page find each other in its one front end. The bench that
// asks first may be closed before anybody answers it, as where its cell is run again.
async function bring(here, model, host) {
  const found = await text(model, host);
  if (!here.found) {
    here.found = true;
    here.done(taken(found));
  }
}

function expected() {
  const here = { found: false };
  here.module = new Promise(done => (here.done = done));
  return here;
}

function front(model, host) {
  const first = globalThis[HERE] === undefined;
  const here = (globalThis[HERE] ??= expected());
  if (first) {
    void bring(here, model, host);
  } else if (!here.found) {
    setTimeout(() => here.found || void bring(here, model, host), PATIENCE);
  }
  return here.module;
}

async function render({ model, el, host }) {
  try {
    return (await front(model, host)).default.render({ model, el });
  } catch (error) {
    delete globalThis[HERE];
    throw error;
  }
}

export default { render };
