"""What all tests share: property tests without a deadline, since a busy machine is no fault."""

from hypothesis import HealthCheck, settings

settings.register_profile("nodeagent", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("nodeagent")
