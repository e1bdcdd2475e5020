"""Settings of the scorers that a step names, written as `--set` of commands is."""

from collections.abc import Sequence

from counterfoil.errors import InputError


def settings_by_scorer(names: Sequence[str], given: Sequence[str]) -> dict[str, dict[str, str]]:
    """What is set of each scorer: `KEY=VALUE` of all that are named, `KIND.KEY=VALUE` of those of one kind.

    Raises `InputError` for what is no such pair, and for a kind that no scorer is of.

    >>> settings_by_scorer(["lm:gpt2", "blind:length"], ["lm.end=in"])
    {'lm:gpt2': {'end': 'in'}, 'blind:length': {}}
    """
    found: dict[str, dict[str, str]] = {name: {} for name in names}
    for pair in given:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise InputError(
                "setting of the scorer", given=pair, allowed="KEY=VALUE, or KIND.KEY=VALUE of one of several"
            )
        kind, dot, own = key.partition(".")
        chosen = [name for name in names if not dot or name.partition(":")[0] == kind]
        if not chosen:
            raise InputError("a setting of a scorer that is not named", given=pair, allowed=names or "none")
        for name in chosen:
            found[name][own if dot else key] = value
    return found
