"""A priority with a Map and a Reduce of its own."""

from podium.rules import RuleNode, RulePod, priority


@priority("ShortNames", weight=2, normalize="reverse")
def short_names(_pod: RulePod, node: RuleNode) -> int:
    """Map: the length of the node's name. Reduce: the shorter, the better."""
    return len(node.name)
