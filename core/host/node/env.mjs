// The environment as the first call found it, for each call that follows. To compare it each time
// takes longer than all else that a host does for a small call, so writing to it is noticed instead.

const real = process.env;
let first = { ...real };
let isTouched = false;

// What is read, listed and inherited by children is the real one; it takes strings, as ever.
const watched = new Proxy(real, {
  set(target, name, value) {
    isTouched = true;
    target[name] = value;
    return true;
  },
  defineProperty(target, name, descriptor) {
    isTouched = true;
    return Reflect.defineProperty(target, name, descriptor);
  },
  deleteProperty(target, name) {
    isTouched = true;
    return delete target[name];
  },
});
process.env = watched;

// A worker that shares it (SHARE_ENV), or a native module, writes behind our back; but it takes longer
// than this to start one.
const UNSEEN_MS = 10;
let since = performance.now();

export function resetEnvironment() {
  const now = performance.now();
  if (process.env !== watched) process.env = watched;
  if (!isTouched && now - since < UNSEEN_MS) return;
  since = now;
  for (const name of Object.keys(real)) if (!(name in first)) delete real[name];
  for (const name of Object.keys(first)) if (real[name] !== first[name]) real[name] = first[name];
  isTouched = false;
}

// For a host that was started before it was known for whom.
export function setEnvironment(env) {
  environment = first = { ...env };
  isTouched = true;
}

export let environment = first;
