"""What mountscripts/ says for Compose, Quadlet and Kubernetes, as options of `podman run`.

So these files run in tests as they are written, except for the image, which is the machine's own, and for
`paths`, which puts directories of the test in the place of the machine's.
"""

import configparser
import dataclasses
import shlex

import yaml

PROPAGATION = {"Bidirectional": "rshared", "HostToContainer": "rslave", None: None}
QUADLET = {"AddDevice": "--device", "AddCapability": "--cap-add", "Tmpfs": "--tmpfs", "Environment": "--env"}


@dataclasses.dataclass
class Deployed:
    command: list
    volumes: list  # (here, there, options)
    args: list


def moved(path, paths):
    for old, new in paths.items():
        if path == old or path.startswith(old + "/"):
            return str(new) + path[len(old):]
    return path


def volume(text, paths):
    here, *rest = text.split(":")
    return (moved(here, paths), *rest)


def without(known, given, what):
    """Nothing in a file is passed over in silence."""
    assert set(given) <= set(known), f"{what}: {set(given) - set(known)}"


def quadlet(file, paths):
    parser = configparser.RawConfigParser(dict_type=Repeated, strict=False, delimiters="=", comment_prefixes="#")
    parser.optionxform = str
    parser.read_string(file.read_text())
    unit = {key: values.split("\n") for key, values in parser["Container"].items()}
    without({*QUADLET, "Image", "Exec", "RunInit", "Volume"}, unit, file)
    args = [word for key, option in QUADLET.items() for value in unit.get(key, []) for word in (option, value)]
    return Deployed(shlex.split(unit["Exec"][0]), [volume(text, paths) for text in unit.get("Volume", [])],
                    args + ["--init"] * (unit.get("RunInit") == ["true"]))


class Repeated(dict):
    """A key that is given again has one more value."""

    def __setitem__(self, key, value):
        if isinstance(value, list) and key in self:
            self[key].extend(value)
        else:
            super().__setitem__(key, value)


def compose(file, paths):
    service = yaml.safe_load(file.read_text())["services"]["agent"]
    without(["image", "init", "command", "devices", "cap_add", "security_opt", "tmpfs", "environment", "volumes"],
            service, file)
    args = ["--init"] * service.get("init", False)
    for key, option in (("devices", "--device"), ("cap_add", "--cap-add"), ("tmpfs", "--tmpfs")):
        args += [word for value in service.get(key, []) for word in (option, value)]
    args += [word for name, value in service.get("environment", {}).items() for word in ("--env", f"{name}={value}")]
    volumes = []
    for one in service["volumes"]:
        if isinstance(one, str):
            volumes.append(volume(one, paths))
        else:
            assert one["type"] == "bind" and one["bind"]["create_host_path"] is False
            volumes.append((moved(one["source"], paths), one["target"], one["bind"]["propagation"]))
    return Deployed(service["command"], volumes, args)


def kubernetes(file, paths, empty):
    """name -> Deployed, those that start first first. empty: a directory for what is an emptyDir."""
    found = yaml.safe_load(file.read_text())
    spec = found["spec"].get("template", found)["spec"]
    places = {one["name"]: str(empty) if "emptyDir" in one else moved(one["hostPath"]["path"], paths)
              for one in spec["volumes"]}
    made = {}
    for container in [*spec.get("initContainers", []), *spec["containers"]]:
        made[container["name"]] = one_of_pod(container, places)
        if spec.get("hostPID"):
            made[container["name"]].args.append("--pid=host")
    return made


def one_of_pod(container, places):
    without(["name", "image", "restartPolicy", "command", "env", "securityContext", "startupProbe", "readinessProbe",
             "livenessProbe", "lifecycle", "resources", "volumeMounts"], container, container["name"])
    security = container["securityContext"]
    args = [word for one in container.get("env", []) for word in ("--env", f"{one['name']}={one['value']}")]
    args += ["--privileged"] * security.get("privileged", False)
    if "runAsUser" in security:
        args += ["--user", f"{security['runAsUser']}:{security['runAsGroup']}"]
    args += ["--security-opt", "no-new-privileges"] * (security.get("allowPrivilegeEscalation") is False)
    volumes = []
    for mount in container["volumeMounts"]:
        here = "/".join([places[mount["name"]], *filter(None, [mount.get("subPath")])])
        options = ["ro"] * mount.get("readOnly", False) + [PROPAGATION[mount.get("mountPropagation")]]
        volumes.append((here, mount["mountPath"], ",".join(filter(None, options)) or "rw"))
    return Deployed(container["command"], volumes, args)


def probe(file, name, kind):
    """The command of a container's probe."""
    found = yaml.safe_load(file.read_text())
    spec = found["spec"].get("template", found)["spec"]
    container = next(one for one in [*spec.get("initContainers", []), *spec["containers"]] if one["name"] == name)
    found = container["lifecycle"] if kind == "preStop" else container
    return found[kind]["exec"]["command"]
