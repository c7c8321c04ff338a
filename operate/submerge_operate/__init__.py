"""The operator's side: the `submerge` command and its subcommands. No device needs this package."""

ROOT, BOX, FILES = "submerge[aggregator]", "submerge[aggregator,host]", "submerge[files]"
PKI = "submerge[pki]"

COMMANDS = {
    "init": (
        "submerge_operate.init.command",
        "Write a configuration of this machine, for `up`.",
        BOX,
    ),
    "up": (
        "submerge_operate.up.command",
        "Watch this machine: client and root in one program.",
        BOX,
    ),
    "aggregator page": (
        "submerge_operate.page",
        "Show a running aggregator in a browser.",
        "submerge[page]",
    ),
    "aggregator audit": (
        "submerge_operate.fleet.audit",
        "Show who joined, and what was refused or ordered.",
        ROOT,
    ),
    "aggregator token": (
        "submerge_operate.fleet.tokens",
        "Make and revoke tokens of operators.",
        ROOT,
    ),
    "nodes": (
        "submerge_operate.fleet.nodes",
        "List who reports; forget a node, quarantine it, or pause what it learns.",
        ROOT,
    ),
    "alarms": ("submerge_operate.fleet.alarms", "List alarms; accept or reject one.", ROOT),
    "alarms test": (
        "submerge_operate.fleet.alarm_test",
        "Send an alarm that is marked as a test to each destination.",
        ROOT,
    ),
    "jobs": (
        "submerge_operate.fleet.jobs.command",
        "Compute something of all rows, in rounds; list what is computed.",
        FILES,
    ),
    "jobs list": ("submerge_operate.fleet.jobs.job_list", "List the jobs of a root.", ROOT),
    "backup": (
        "submerge_operate.backup",
        "Copy the store of a running root; check a copy, or restore it.",
        ROOT,
    ),
    "pki": (
        "submerge_operate.pki.command",
        "Make certificates: an authority, and nodes' kits.",
        PKI,
    ),
    "pki kits": ("submerge_operate.pki.kits", "Make kits for all nodes of a list.", PKI),
    "doctor": ("submerge_operate.doctor.command", "Find what keeps a program from its work.", ROOT),
    "drill": ("submerge_operate.fleet.drill", "Say which faults would raise an alarm.", FILES),
    "model": (
        "submerge_operate.fleet.model",
        "Show, save, compare and export what is normal.",
        FILES,
    ),
}
"""Words -> the module of a command, what it does, what to install for it."""
