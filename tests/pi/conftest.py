"""The mounts of the end-to-end tests, for the pi agent."""

import importlib.util
import pathlib

PATH = pathlib.Path(__file__).resolve().parents[1] / "e2e" / "conftest.py"
spec = importlib.util.spec_from_file_location("e2e_conftest", PATH)
e2e = importlib.util.module_from_spec(spec)
spec.loader.exec_module(e2e)
globals().update({name: value for name, value in vars(e2e).items() if not name.startswith("__")})
