"""Would the tests notice? One configuration of cosmic-ray per folder of yarnctl, with its tests."""
