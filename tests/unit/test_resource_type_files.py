"""``--resource-types`` of the emulator: a site's keys are read, or rejected by their name."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.live.programs.manager_program import Options, settings_of
from emulator.live.wire.submitted_job import StreamingJob, check, others_wanted
from emulator.scenario.resource_types import read_resource_types
from tests.unit.scheduler_files import ABSOLUTE, MEMORY_ALONE, NESTED, write_file
from yarnctl.errors import BadInput

TYPES = {
    "yarn.resource-types": "yarn.io/gpu, fpga",
    "yarn.resource-types.yarn.io/gpu.units": "",
    "yarn.resource-types.fpga.type": "COUNTABLE",
    "yarn.resource-types.fpga.minimum-allocation": "0",
    "yarn.nodemanager.resource-type.yarn.io/gpu": "4",
}


def types_file(folder: Path, keys: dict[str, str]) -> Path:
    rows = "".join(
        f"<property><name>{key}</name><value>{value}</value></property>" for key, value in keys.items()
    )
    path = folder / "resource-types.xml"
    path.write_text(f"<configuration>{rows}</configuration>")
    return path


def test_types_are_read_with_what_each_node_has(tmp_path: Path) -> None:
    assert read_resource_types(types_file(tmp_path, TYPES)) == {"yarn.io/gpu": 4, "fpga": 0}


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"yarn.resource-types": ""}, "yarn.resource-types: names no resource type"),
        ({"yarn.resource-types": "fpga,vcores"}, "'vcores' is not a name, is built in, or is named twice"),
        ({"yarn.resource-types": "fpga,fpga"}, "'fpga' is not a name, is built in, or is named twice"),
        ({"yarn.resource-types.fpga.units": "Gi"}, "yarn.resource-types.fpga.units: is not modelled"),
        ({"yarn.resource-types.fpga.maximum-allocation": "2"}, "fpga.maximum-allocation: is not modelled"),
        ({"yarn.nodemanager.resource-type.disk": "1"}, "resource-type.disk: is not modelled by the emulator"),
        ({"yarn.nodemanager.resource-type.fpga": "1Gi"}, "'1Gi' is not a whole number"),
        ({"yarn.nodemanager.resource-plugins": "yarn.io/gpu"}, "resource-plugins: is not modelled"),
    ],
)
def test_another_key_is_rejected_by_its_name(tmp_path: Path, keys: dict[str, str], said: str) -> None:
    with pytest.raises(BadInput) as rejected:
        read_resource_types(types_file(tmp_path, {**TYPES, **keys}))
    assert said in str(rejected.value)
    assert "resource-types.xml" in str(rejected.value)


def test_types_need_a_tree_of_shares(tmp_path: Path) -> None:
    options = Options(work=tmp_path, resource_types=types_file(tmp_path, TYPES))
    with pytest.raises(BadInput, match="--resource-types: has no effect without --scheduler-xml"):
        settings_of(options)
    absolute = write_file(tmp_path, {**NESTED, **ABSOLUTE})
    options = Options(work=tmp_path, resource_types=options.resource_types, scheduler_xml=absolute)
    with pytest.raises(BadInput, match=r"root\.eng has absolute resources of memory and vcores only"):
        settings_of(options)
    options = Options(
        work=tmp_path, resource_types=options.resource_types, scheduler_xml=write_file(tmp_path, NESTED)
    )
    assert settings_of(options).types == {"yarn.io/gpu": 4, "fpga": 0}


def test_types_need_a_calculator_that_counts_them(tmp_path: Path) -> None:
    queues = write_file(tmp_path, {**NESTED, "resource-calculator": MEMORY_ALONE})
    options = Options(work=tmp_path, resource_types=types_file(tmp_path, TYPES), scheduler_xml=queues)
    with pytest.raises(BadInput, match=r"counts memory alone.*set yarn\.scheduler\.capacity\.resource-calc"):
        settings_of(options)


def job(settings: dict[str, str]) -> StreamingJob:
    return StreamingJob(name="j", inputs=("/in",), output="/out", mapper="cat", reduces=0, settings=settings)


def test_a_job_requests_types_by_hadoops_settings() -> None:
    settings = {
        "mapreduce.map.resource.yarn.io/gpu": "2",
        "mapreduce.reduce.resource.fpga": "1",
        "yarn.app.mapreduce.am.resource.mb": "1024",
    }
    check(job(settings))
    assert others_wanted(settings, "map") == {"yarn.io/gpu": 2}
    assert others_wanted(settings, "reduce") == {"fpga": 1}


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("mapreduce.map.resource.yarn.io/gpu", "2Gi", "=2Gi: is not a whole number"),
        ("mapreduce.map.resource.memory-mb", "2048", "mapreduce.map.resource.memory-mb: is not modelled"),
        ("yarn.app.mapreduce.am.resource.yarn.io/gpu", "1", "am.resource.yarn.io/gpu: is not modelled"),
    ],
)
def test_a_setting_that_no_master_reads_is_rejected(key: str, value: str, said: str) -> None:
    with pytest.raises(BadInput) as rejected:
        check(job({key: value}))
    assert said in str(rejected.value)
