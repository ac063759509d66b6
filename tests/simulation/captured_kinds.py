"""Kinds of values that a traced function can read, each with a way to change it from 1 to 2.

`KINDS[name]()` gives `(read, change)`: `read()` is 1.0 before and 2.0 after `change()`.
"""

from __future__ import annotations

import array
import collections
import contextvars
import ctypes
import enum
import functools
import importlib
import os
import sys
import tempfile
import threading
import types
import weakref
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

GLOBAL = 1.0
GLOBAL_LIST = [1.0]


def _set(name, value):
    globals()[name] = value


def of_global():
    def read():
        return GLOBAL

    _set("GLOBAL", 1.0)
    return read, lambda: _set("GLOBAL", 2.0)


def global_by_name():
    _set("GLOBAL", 1.0)
    return (lambda: globals()["GLOBAL"]), lambda: _set("GLOBAL", 2.0)


def global_of_called_function():
    def inner():
        return GLOBAL

    def middle():
        return inner()

    _set("GLOBAL", 1.0)
    return (lambda: middle()), lambda: _set("GLOBAL", 2.0)


def closure():
    value = 1.0

    def change():
        nonlocal value
        value = 2.0

    return (lambda: value), change


def closure_of_called_function():
    value = 1.0

    def inner():
        return value

    def change():
        nonlocal value
        value = 2.0

    return (lambda: inner()), change


def module_attribute():
    module = types.ModuleType("gains")
    module.gain = 1.0
    return (lambda: module.gain), lambda: setattr(module, "gain", 2.0)


def function_replaced_in_a_module():
    module = types.ModuleType("laws")
    module.law = lambda: 1.0
    return (lambda: module.law()), lambda: setattr(module, "law", lambda: 2.0)


def imported_inside():
    module = types.ModuleType("imported_gains")
    module.gain = 1.0
    sys.modules["imported_gains"] = module

    def read():
        return importlib.import_module("imported_gains").gain

    return read, lambda: setattr(module, "gain", 2.0)


def import_statement():
    module = types.ModuleType("stated_gains")
    module.gain = 1.0
    sys.modules["stated_gains"] = module

    def read():
        import stated_gains

        return stated_gains.gain

    return read, lambda: setattr(module, "gain", 2.0)


def class_attribute():
    class Config:
        gain = 1.0

    return (lambda: Config.gain), lambda: setattr(Config, "gain", 2.0)


def inherited_class_attribute():
    class Base:
        gain = 1.0

    class Config(Base):
        pass

    made = Config()
    return (lambda: made.gain), lambda: setattr(Base, "gain", 2.0)


def metaclass_attribute():
    class Meta(type):
        gain = 1.0

    class Config(metaclass=Meta):
        pass

    return (lambda: Config.gain), lambda: setattr(Meta, "gain", 2.0)


def instance_attribute():
    class Config:
        def __init__(self):
            self.gain = 1.0

    made = Config()
    return (lambda: made.gain), lambda: setattr(made, "gain", 2.0)


def another_class():
    class One:
        gain = 1.0

    class Two:
        gain = 2.0

    made = One()
    return (lambda: made.gain), lambda: setattr(made, "__class__", Two)


def method_replaced():
    class Config:
        def gain(self):
            return 1.0

    made = Config()
    return (lambda: made.gain()), lambda: setattr(Config, "gain", lambda self: 2.0)


def slots():
    class Config:
        __slots__ = ("gain",)

    made = Config()
    made.gain = 1.0
    return (lambda: made.gain), lambda: setattr(made, "gain", 2.0)


def of_property():
    class Config:
        held = 1.0

        @property
        def gain(self):
            return self.held

    made = Config()
    return (lambda: made.gain), lambda: setattr(made, "held", 2.0)


def of_descriptor():
    class Gain:
        value = 1.0

        def __get__(self, owner, kind):
            return self.value

    class Config:
        gain = Gain()

    made = Config()
    return (lambda: made.gain), lambda: setattr(Gain, "value", 2.0)


def of_getattr():
    held = {"gain": 1.0}

    class Config:
        def __getattr__(self, name):
            return held[name]

    made = Config()
    return (lambda: made.gain), lambda: held.update(gain=2.0)


def by_getattr():
    class Config:
        gain = 1.0

    made = Config()
    return (lambda: getattr(made, "gain")), lambda: setattr(made, "gain", 2.0)  # noqa: B009


def static_and_class_methods():
    class Config:
        held = 1.0

        @classmethod
        def gain(cls):
            return cls.held

    made = Config()
    return (lambda: made.gain()), lambda: setattr(Config, "held", 2.0)


def callable_object_that_reads_a_global():
    class Law:
        def __call__(self):
            return GLOBAL

    made = Law()
    _set("GLOBAL", 1.0)
    return (lambda: made()), lambda: _set("GLOBAL", 2.0)


def bound_method():
    class Law:
        def __init__(self):
            self.gain = 1.0

        def law(self):
            return self.gain

    made = Law()
    method = made.law
    return (lambda: method()), lambda: setattr(made, "gain", 2.0)


def abstract_class():
    class Law(ABC):
        @abstractmethod
        def law(self): ...

    class Own(Law):
        def law(self):
            return self.gain

    made = Own()
    made.gain = 1.0
    return (lambda: made.law()), lambda: setattr(made, "gain", 2.0)


def of_dataclass():
    @dataclass
    class Config:
        gains: list = field(default_factory=lambda: [1.0])

    made = Config()
    return (lambda: made.gains[0]), lambda: made.gains.__setitem__(0, 2.0)


def frozen_dataclass_with_slots():
    @dataclass(frozen=True, slots=True)
    class Config:
        gain: float

    made = Config(1.0)
    return (lambda: made.gain), lambda: object.__setattr__(made, "gain", 2.0)


def named_tuple():
    class Config(NamedTuple):
        gains: Any

    made = Config([1.0])
    return (lambda: made.gains[0]), lambda: made.gains.__setitem__(0, 2.0)


def of_enum():
    class Config(enum.Enum):
        GAIN = "gain"

    Config.GAIN.amount = 1.0
    return (lambda: Config.GAIN.amount), lambda: setattr(Config.GAIN, "amount", 2.0)


def simple_namespace():
    made = types.SimpleNamespace(gain=1.0)
    return (lambda: made.gain), lambda: setattr(made, "gain", 2.0)


def of_list():
    values = [1.0]
    return (lambda: values[0]), lambda: values.__setitem__(0, 2.0)


def list_that_grows():
    values = [1.0]
    return (lambda: float(len(values))), lambda: values.append(0.0)


def of_tuple_with_a_list():
    values = ([1.0],)
    return (lambda: values[0][0]), lambda: values[0].__setitem__(0, 2.0)


def deep_nesting():
    leaf = [1.0]
    values: Any = leaf
    for level in range(40):
        values = [values] if level % 2 else {"next": values}

    def read():
        at = values
        for level in reversed(range(40)):
            at = at[0] if level % 2 else at["next"]
        return at[0]

    return read, lambda: leaf.__setitem__(0, 2.0)


def list_that_holds_itself():
    values: list[Any] = [1.0]
    values.append(values)
    return (lambda: values[1][1][0]), lambda: values.__setitem__(0, 2.0)


def of_deque():
    values = collections.deque([1.0])
    return (lambda: values[0]), lambda: values.__setitem__(0, 2.0)


def of_set():
    values = {1.0}

    def change():
        values.clear()
        values.add(2.0)

    return (lambda: sum(values)), change


def of_dict():
    values = {"gain": 1.0}
    return (lambda: values["gain"]), lambda: values.update(gain=2.0)


def order_of_dict():
    values = {1.0: None, 2.0: None}

    def change():
        values.pop(1.0)
        values[1.0] = None

    return (lambda: next(iter(values))), change


def dict_view():
    values = {"gain": 1.0}
    view = values.values()
    return (lambda: sum(view)), lambda: values.update(gain=2.0)


def mapping_proxy():
    values = {"gain": 1.0}
    proxy = types.MappingProxyType(values)
    return (lambda: proxy["gain"]), lambda: values.update(gain=2.0)


def default_dict():
    values = collections.defaultdict(lambda: 1.0)
    return (lambda: values["gain"]), lambda: values.update(gain=2.0)


def user_dict():
    values = collections.UserDict(gain=1.0)
    return (lambda: values["gain"]), lambda: values.update(gain=2.0)


def chain_map():
    values: dict[str, float] = {}
    chain = collections.ChainMap(values, {"gain": 1.0})
    return (lambda: chain["gain"]), lambda: values.update(gain=2.0)


def list_subclass():
    class Values(list):
        pass

    values = Values([1.0])
    return (lambda: values[0]), lambda: values.__setitem__(0, 2.0)


def array_in_place():
    values = np.ones(3)
    return (lambda: values[0]), lambda: values.__setitem__(0, 2.0)


def base_of_an_array():
    base = np.ones(9)
    values = base[2:5]
    return (lambda: values.base[0]), lambda: base.__setitem__(0, 2.0)


def large_array():
    values = np.ones(1 << 18)
    return (lambda: values[1 << 17]), lambda: values.__setitem__(1 << 17, 2.0)


def shape_of_an_array():
    values = np.ones((1, 2))
    return (lambda: float(values.shape[0])), lambda: setattr(values, "shape", (2, 1))


def object_array():
    values = np.array([[1.0], None], dtype=object)
    return (lambda: values[0][0]), lambda: values[0].__setitem__(0, 2.0)


def array_subclass():
    class Values(np.ndarray):
        pass

    values = np.ones(2).view(Values)
    return (lambda: float(values[0])), lambda: values.__setitem__(0, 2.0)


def array_of_zero_dimensions():
    value = np.array(1.0)
    return (lambda: value * 1.0), lambda: value.__setitem__((), 2.0)


def structured_array():
    values = np.array([(1.0,)], dtype=[("gain", float)])
    return (lambda: values["gain"][0]), lambda: values["gain"].__setitem__(0, 2.0)


def numpy_scalar():
    value = np.float64(1.0)

    def change():
        nonlocal value
        value = np.float64(2.0)

    return (lambda: value), change


def default_argument():
    def read(value=1.0):
        return value

    return read, lambda: setattr(read, "__defaults__", (2.0,))


def mutable_default_argument():
    def read(values=[1.0]):  # noqa: B006
        return values[0]

    return read, lambda: read.__defaults__[0].__setitem__(0, 2.0)


def keyword_default():
    def read(*, value=1.0):
        return value

    return read, lambda: read.__kwdefaults__.update(value=2.0)


def function_attribute():
    def read():
        return read.gain

    read.gain = 1.0
    return read, lambda: setattr(read, "gain", 2.0)


def code_of_a_function():
    def read():
        return 1.0

    return read, lambda: setattr(read, "__code__", (lambda: 2.0).__code__)


def of_partial():
    values = {"value": [1.0]}
    made = functools.partial(lambda value: value[0], **values)
    return (lambda: made()), lambda: values["value"].__setitem__(0, 2.0)


def wrapped_function():
    held = [1.0]

    @functools.wraps(of_list)
    def read():
        return held[0]

    return read, lambda: held.__setitem__(0, 2.0)


def weak_reference():
    class Config:
        gain = 1.0

    made = Config()
    reference = weakref.ref(made)

    def change(made=made):
        made.gain = 2.0

    return (lambda: reference().gain), change


def of_ctypes():
    value = ctypes.c_double(1.0)
    return (lambda: value.value), lambda: setattr(value, "value", 2.0)


def of_bytearray():
    values = bytearray([1])
    return (lambda: float(values[0])), lambda: values.__setitem__(0, 2)


def of_memoryview():
    values = array.array("d", [1.0])
    view = memoryview(values)
    return (lambda: view[0]), lambda: values.__setitem__(0, 2.0)


def of_array_module():
    values = array.array("d", [1.0])
    return (lambda: values[0]), lambda: values.__setitem__(0, 2.0)


def environment():
    os.environ["DALEMBERT_TEST_GAIN"] = "1.0"
    return (
        lambda: float(os.environ["DALEMBERT_TEST_GAIN"]),
        lambda: os.environ.update(DALEMBERT_TEST_GAIN="2.0"),
    )


def of_file():
    folder = tempfile.mkdtemp()
    path = Path(folder) / "gain"
    path.write_text("1.0")
    return (lambda: float(path.read_text())), lambda: path.write_text("2.0")


def context_variable():
    variable = contextvars.ContextVar("gain", default=1.0)
    return (lambda: variable.get()), lambda: variable.set(2.0)


def thread_local():
    held = threading.local()
    held.gain = 1.0
    return (lambda: held.gain), lambda: setattr(held, "gain", 2.0)


def by_text():
    _set("GLOBAL", 1.0)
    return (lambda: eval("GLOBAL")), lambda: _set("GLOBAL", 2.0)


def frame_of_a_generator():
    _set("GLOBAL", 1.0)
    return (lambda: (x for x in ()).gi_frame.f_globals["GLOBAL"]), lambda: _set("GLOBAL", 2.0)


def hidden_by_text():
    class Config:
        def __repr__(self):
            return str(GLOBAL)

    made = Config()
    _set("GLOBAL", 1.0)
    return (lambda: float(f"{made}")), lambda: _set("GLOBAL", 2.0)


def comprehension():
    values = [1.0]
    return (lambda: sum(value for value in values)), lambda: values.__setitem__(0, 2.0)


def builtin_hidden_by_a_global():
    space: dict[str, Any] = {"values": [1.0, 1.0]}
    exec("def read():\n    return float(max(values))", space)
    return space["read"], lambda: space.update(max=sum)


def read_only_view_of_an_array():
    base = np.ones(3)
    values = base.view()
    values.flags.writeable = False
    return (lambda: values[0]), lambda: base.__setitem__(0, 2.0)


KINDS = {
    name: item
    for name, item in list(globals().items())
    if isinstance(item, types.FunctionType)
    and item.__module__ == __name__
    and not name.startswith("_")
    and name not in ("dataclass", "field", "abstractmethod")
}
