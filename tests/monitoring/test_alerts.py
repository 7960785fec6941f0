"""The shipped rules and the board, checked by Debian's promtool."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.frozen.invoking import invoked
from tests.monitoring.promtool import BOARD, RULES, names_in, program, promtool, queries, rules
from tests.unit.service.played import last
from yarnctl.daemon.view.published import View
from yarnctl.daemon.view.waits import QueueWaits
from yarnctl.deciding.loss_budget import BudgetStanding
from yarnctl.deciding.reasons.demand import StandingAside
from yarnctl.hadoop.http.request_counts import RequestTally
from yarnctl.service.routes import prometheus

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/monitoring.md"
WELL_MIN = 30
"""Minutes without a fault before it, and the least after it."""

Value = Callable[[int, int], float]
"""A sample at a minute, of which the fault has lasted so many (0: there is none, or it is over)."""


class Case(NamedTuple):
    """The series of a rule while a fault lasts.

    ``fires_min``: the minutes from the first sample with the fault to the alert; ``resolves_min``: from the
    first sample without it to the alert's end.
    """

    series: Mapping[str, Value]
    fires_min: int
    resolves_min: int = 0


def gauge(well: float, fault: float) -> Value:
    return lambda _, lasted: fault if lasted else well


def counter(well: float, fault: float) -> Value:
    """A counter with so many events a minute."""
    total = [0.0]

    def value(_: int, lasted: int) -> float:
        total[0] += fault if lasted else well
        return total[0]

    return value


def clock(minute: int, lasted: int) -> float:
    """The instant of a view that is published until the fault."""
    return 60.0 * (minute - lasted)


def started(minute: int, lasted: int) -> float:
    """The start of a daemon that starts anew each minute."""
    return 60.0 * minute if lasted else 60.0 * WELL_MIN if minute > WELL_MIN else 0.0


A = 'instance="a"'
NAME_NODE = A + ',server="NameNode",address="n:9870"'
CASES: dict[str, Callable[[], Case]] = {
    "YarnctlDown": lambda: Case({'up{job="yarnctl",instance="a"}': gauge(1, 0)}, 2),
    "YarnctlNoLeader": lambda: Case(
        {'yarnctl_leader{job="y",instance="a"}': gauge(1, 0),
         'yarnctl_leader{job="y",instance="b"}': gauge(0, 0)}, 2,
    ),
    "YarnctlLoopStuck": lambda: Case({f"yarnctl_view_timestamp_seconds{{{A}}}": clock}, 2),
    "YarnctlClusterUnreachable": lambda: Case({f"yarnctl_cluster_reachable{{{A}}}": gauge(1, 0)}, 2),
    "YarnctlRequestsFail": lambda: Case(
        {f'yarnctl_requests_total{{{NAME_NODE},result="answered"}}': counter(60, 50),
         f'yarnctl_requests_total{{{NAME_NODE},result="failed"}}': counter(0, 30)}, 6, 3,
    ),
    "YarnctlBlocked": lambda: Case({f'yarnctl_loop_state{{{A},state="blocked"}}': gauge(0, 1)}, 10),
    "YarnctlPaused": lambda: Case({f'yarnctl_loop_state{{{A},state="paused"}}': gauge(0, 1)}, 240),
    "YarnctlQueuePaused": lambda: Case(
        {f'yarnctl_queue_aside_until_timestamp_seconds{{{A},queue="etl"}}': gauge(0, 1e9)}, 1
    ),
    "YarnctlTicksFail": lambda: Case({f"yarnctl_tick_errors_total{{{A}}}": counter(0, 2)}, 2, 7),
    "YarnctlTicksSlow": lambda: Case({f"yarnctl_last_tick_seconds{{{A}}}": gauge(0.1, 5)}, 7, 3),
    "YarnctlRestarts": lambda: Case({f"yarnctl_start_time_seconds{{{A}}}": started}, 2, 58),
    "YarnctlSettingLeftLowered": lambda: Case(
        {f'yarnctl_lowered_settings{{{A},kind="queue"}}': gauge(0, 1),
         f'yarnctl_lowered_settings{{{A},kind="preemption"}}': gauge(1, 1),
         f'yarnctl_pending_containers{{{A},role="preempting"}}': gauge(0, 0)}, 15,
    ),
    "YarnctlOrdersFail": lambda: Case(
        {f'yarnctl_orders_ended_total{{{A},state="granted"}}': counter(1, 0),
         f'yarnctl_orders_ended_total{{{A},state="given_up"}}': counter(0, 2)}, 10, 19,
    ),
    "YarnctlBudgetSpent": lambda: Case(
        {f'yarnctl_budget_lost_seconds{{{A},queue="r"}}': gauge(10, 95),
         f'yarnctl_budget_left_seconds{{{A},queue="r"}}': gauge(90, 5)}, 15,
    ),
    "YarnctlWorkLost": lambda: Case({f"yarnctl_lost_checkpoints_total{{{A}}}": counter(0, 1)}, 0, 59),
    "ProductionWaits": lambda: Case(
        {f'yarnctl_production_longest_wait_seconds{{{A},queue="etl"}}': gauge(3, 700)}, 0
    ),
}  # fmt: skip
"""One fault of each rule."""


def test_the_rules_and_their_names_are_known() -> None:
    assert list(rules())
    assert set(rules()) == set(CASES)
    checked = promtool("check", "rules", str(RULES))
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize("name", CASES)
def test_each_rule_fires_after_its_time_and_resolves(name: str, tmp_path: Path) -> None:
    case = CASES[name]()
    fault_min = case.fires_min + 5
    end_min = WELL_MIN + fault_min
    minutes = range(end_min + case.resolves_min + 5)
    series = [
        {
            "series": text,
            "values": " ".join(
                f"{value(minute, minute - WELL_MIN + 1 if WELL_MIN <= minute < end_min else 0):g}"
                for minute in minutes
            ),
        }
        for text, value in case.series.items()
    ]
    firing = f'count(ALERTS{{alertname="{name}",alertstate="firing"}}) or vector(0)'
    fires, resolves = WELL_MIN + case.fires_min, end_min + case.resolves_min
    looks = {WELL_MIN - 1: 0, fires - 1: 0, fires: 1, end_min - 1: 1, resolves - 1: 1, resolves: 0}
    checks = [
        {"expr": firing, "eval_time": f"{minute}m", "exp_samples": [{"labels": "{}", "value": count}]}
        for minute, count in looks.items()
    ]
    test = {"interval": "1m", "input_series": series, "promql_expr_test": checks}
    file = tmp_path / "test.yaml"
    file.write_text(json.dumps({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [test]}))
    done = promtool("test", "rules", str(file))
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_alert_names_the_daemon_and_its_runbook(tmp_path: Path) -> None:
    rule = rules()["YarnctlDown"]
    summary = "yarnctl at a does not answer"
    expected = {
        "exp_labels": {"severity": "critical", "job": "yarnctl", "instance": "a"},
        "exp_annotations": {"summary": summary, "runbook": rule["annotations"]["runbook"]},
    }
    test = {
        "interval": "1m",
        "input_series": [{"series": 'up{job="yarnctl",instance="a"}', "values": "0x9"}],
        "alert_rule_test": [{"eval_time": "5m", "alertname": "YarnctlDown", "exp_alerts": [expected]}],
    }
    file = tmp_path / "test.yaml"
    file.write_text(json.dumps({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [test]}))
    done = promtool("test", "rules", str(file))
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_query_of_the_board_is_valid(tmp_path: Path) -> None:
    recorded = [{"record": f"panel_{number}", "expr": query} for number, (_, query) in enumerate(queries())]
    assert len(recorded) > 20
    file = tmp_path / "board.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "board", "rules": recorded}]}))
    done = promtool("check", "rules", str(file))
    assert done.returncode == 0, done.stderr


def full() -> View:
    """A view with a value for every metric."""
    aside = StandingAside("production", 300_000, (), 5, "queue")
    sent = {("ResourceManager", "rm:8088", "answered"): RequestTally(1, 0.1)}
    status = msgspec.structs.replace(last().loop, leads=True, aside=(aside,), requests=sent)
    budget = BudgetStanding("queue", "root.research", "", 0.02, 3_600_000, 1, 1_024, 72_000, 3, 4_000)
    waits = {"production": QueueWaits(last().waits["production"].ended, 5)}
    return msgspec.structs.replace(last(), loop=status, budgets=(budget,), waits=waits)


def test_every_series_of_a_rule_and_of_the_board_exists() -> None:
    text = prometheus.text(full()).decode()
    known = {sample.name for family in text_string_to_metric_families(text) for sample in family.samples}
    used = {name for _, query in queries() for name in names_in(query)}
    used |= {name for rule in rules().values() for name in names_in(rule["expr"])}
    assert used
    assert used <= known


def test_the_metrics_satisfy_promtool() -> None:
    import subprocess

    text = prometheus.text(full())
    done = subprocess.run([program("promtool"), "check", "metrics"], input=text, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


def test_each_alert_has_its_section_in_the_runbook() -> None:
    sections = {line[4:].lower() for line in PAGE.read_text().splitlines() if line.startswith("### ")}
    for name, rule in rules().items():
        page, _, anchor = rule["annotations"]["runbook"].partition("#")
        assert (ROOT / page, anchor) == (PAGE, name.lower())
    assert sections == {name.lower() for name in rules()}


def test_the_board_fits_and_has_no_address_of_a_site() -> None:
    board = json.loads(BOARD.read_text())
    places = [panel["gridPos"] for panel in board["panels"]]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    cells = [
        (x, y) for p in places for x in range(p["x"], p["x"] + p["w"]) for y in range(p["y"], p["y"] + p["h"])
    ]
    assert len(cells) == len(set(cells)), "two panels overlap"
    assert not re.findall(r"https?://", BOARD.read_text())


def test_the_command_writes_both_files_and_replaces_none(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "monitoring"
    written = invoked("monitoring", "--write", str(folder))
    assert written["status"] == 0
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        path.name: path.read_bytes() for path in (RULES, BOARD)
    }
    assert invoked("monitoring", "--write", str(folder))["status"] == 0
    (folder / "alerts.yaml").write_text("mine")
    refused = invoked("monitoring", "--write", str(folder))
    assert (refused["status"], "--force" in refused["err"][0]) == (2, True)
    assert (folder / "alerts.yaml").read_text() == "mine"
    assert invoked("monitoring", "--write", str(folder), "--force")["status"] == 0
    assert (folder / "alerts.yaml").read_bytes() == RULES.read_bytes()
