"""The base class of the serializers of response bodies, which serializes without REST framework."""

import functools
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, NamedTuple

from rest_framework import serializers

from mastra_memory.api.serializers.fields import Field

Json = dict[str, Any]


class _SerializationPlan(NamedTuple):
    """How to serialize an instance, derived once from the fields of a serializer class."""

    names: tuple[str, ...]
    sources: tuple[str, ...]
    read: Callable[[Any], Any]
    """Return the values of all sources from the attributes of an instance."""
    conversions: tuple[tuple[str, Callable[[Any], Any]], ...]
    optional: tuple[str, ...]


class ResponseSerializer(serializers.Serializer[Any]):
    """The base class of the serializers of response bodies.

    A field with `required=False` is left out if its value is None. Instances may be objects or
    dictionaries; `source` is the name of the attribute or the key.

    REST framework's own `to_representation` looks up every attribute and calls every field in a
    loop, which takes several times longer.
    """

    @classmethod
    def represent(cls, instance: Any) -> Json:
        """Return the response body for an instance.

        Creating a serializer for each request, as `cls(instance).data` does, takes longer than
        building a short response, and `many=True` creates two of them.
        """
        return _get_serializer(cls).to_representation(instance)

    @classmethod
    def represent_list(cls, instances: Iterable[Any]) -> list[Json]:
        """Return the response bodies for several instances."""
        represent = _get_serializer(cls).to_representation
        return [represent(instance) for instance in instances]

    def to_representation(self, instance: Any) -> Json:
        """Return the response body as a dictionary."""
        names, sources, read, conversions, optional = _make_plan(type(self))
        values = map(instance.get, sources) if isinstance(instance, dict) else read(instance)
        answer = dict(zip(names, values, strict=True))
        for name, convert in conversions:
            if answer[name] is not None:
                answer[name] = convert(answer[name])
        for name in optional:
            if answer[name] is None:
                del answer[name]
        return answer


@functools.cache
def _get_serializer(serializer_class: type[ResponseSerializer]) -> ResponseSerializer:
    # `to_representation` keeps no state, so one instance serves all requests.
    return serializer_class()


@functools.cache
def _make_plan(serializer_class: type[ResponseSerializer]) -> _SerializationPlan:
    fields: dict[str, Field] = _get_serializer(serializer_class).fields  # type: ignore[assignment]
    sources = tuple(field.source or name for name, field in fields.items())
    read = attrgetter(*sources)
    return _SerializationPlan(
        names=tuple(fields),
        sources=sources,
        read=read if len(sources) > 1 else lambda instance: (read(instance),),
        conversions=tuple(
            (name, field.to_representation)
            for name, field in fields.items()
            if getattr(field, "converts", True)
        ),
        optional=tuple(name for name, field in fields.items() if not field.required),
    )
