# SPDX-License-Identifier: Apache-2.0
"""What ControllerModifyVolume changes, as it is on record."""

MIB = 1 << 20
DEFAULTS = {"usage": "AppDirect", "eraseafter": "true"}
BANDWIDTHS = ("eraseBandwidth", "copyBandwidth")
SETTINGS = (*DEFAULTS, *BANDWIDTHS)


def setting_of(key, value):
    """As settings_of() shows what was asked for, in MiB where it is a bandwidth."""
    return int(value.removesuffix("Mi")) * MIB if key in BANDWIDTHS else value


def settings_of(record):
    given = record["parameters"]
    return tuple(given.get(key, default) for key, default in DEFAULTS.items()) + tuple(
        record.get(key, 0) for key in BANDWIDTHS
    )
