"""Devices as `podium lab --devices` writes them."""

from __future__ import annotations

import pytest

from podium.errors import InputError
from podium.lab.controllers.device_driver import DeviceSet, parse_device_set


def test_a_number_alone_is_devices_on_every_node() -> None:
    assert parse_device_set("8") == DeviceSet(8)


def test_settings_say_whose_the_devices_are_and_what_they_are_like() -> None:
    text = (
        "2,driver=gpu.example.com,class=gpu,resource=example.com/gpu,nodes=4,label=zone=a,"
        "model=h100,memory=80Gi,slots=7,ecc=true,firmware=1.2.3,example.com/rack=r1"
    )
    assert parse_device_set(text) == DeviceSet(
        2,
        "gpu.example.com",
        "gpu",
        "example.com/gpu",
        ("zone", "a"),
        4,
        {
            "model": {"string": "h100"},
            "slots": {"int": 7},
            "ecc": {"bool": True},
            "firmware": {"version": "1.2.3"},
            "example.com/rack": {"string": "r1"},
        },
        {"memory": "80Gi"},
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is not a number of devices from 1 to 128"),
        ("129", "'129' is not a number of devices from 1 to 128"),
        ("8,model", "'model' is not NAME=VALUE"),
        ("8,a=1,a=2", "a is given twice"),
        ("8,driver=No_Name", "'No_Name' is not the name of a driver"),
        ("8,class=No_Name", "'No_Name' is not the name of a class"),
        ("8,resource=gpu", "'gpu' is not the name of an extended resource"),
        ("8,nodes=few", "nodes=few is not a number"),
        ("8,a-b=1", "'a-b' is not a name of an attribute"),
    ],
)
def test_mistakes_are_named(text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        parse_device_set(text)
    assert str(error.value).startswith(message)
