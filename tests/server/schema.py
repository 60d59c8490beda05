"""As much of JSON Schema as the server's document uses. A keyword that it does not know is an error, not a pass, and so is
a member of an object that is not among those which the schema names."""

import datetime
import uuid

KNOWN = {"$ref", "type", "format", "enum", "items", "properties", "required", "additionalProperties", "anyOf",
         "description", "examples"}


def is_date_time(text):
    datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


FORMATS = {"date-time": is_date_time, "uuid": uuid.UUID, "uri": lambda text: text.index(":")}
TYPES = {"string": str, "object": dict, "array": list, "boolean": bool, "null": type(None)}


def is_of_type(value, name):
    if name in ("integer", "number"):
        return isinstance(value, int if name == "integer" else (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def faults(document, schema, value, place="it"):
    """What is wrong with the value, as a list of sentences."""
    unknown = set(schema) - KNOWN
    if unknown:
        return [f"{place}: the schema has {unknown}, which nobody checks"]
    if "$ref" in schema:
        for name in schema["$ref"].removeprefix("#/").split("/"):
            document_part = document[name] if name == "components" else document_part[name]  # noqa: F821
        return faults(document, document_part, value, place)
    if "anyOf" in schema:
        tried = [faults(document, one, value, place) for one in schema["anyOf"]]
        return [] if [] in tried else sum(tried, [])
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(is_of_type(value, name) for name in types):
        return [f"{place} is {value!r:.60}, not {types}"]
    found = []
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{place} is {value!r:.60}, not one of {schema['enum']}")
    if "format" in schema and isinstance(value, str):
        try:
            FORMATS[schema["format"]](value)
        except ValueError:
            found.append(f"{place} is {value!r:.60}, no {schema['format']}")
    if isinstance(value, list):
        for number, item in enumerate(value):
            found += faults(document, schema.get("items", {}), item, f"{place}[{number}]")
    if isinstance(value, dict):
        found += object_faults(document, schema, value, place)
    return found


def object_faults(document, schema, value, place):
    found = [f"{place} has no {name}" for name in schema.get("required", []) if name not in value]
    properties = schema.get("properties", {})
    for name, member in value.items():
        if name in properties:
            found += faults(document, properties[name], member, f"{place}.{name}")
        elif not schema.get("additionalProperties", not properties):
            found.append(f"{place} has a {name}, which the schema does not")
    return found
