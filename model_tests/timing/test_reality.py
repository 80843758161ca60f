"""The closed form against what was measured with real brokers."""

from collections import Counter

from model_tests.reality.predicted import NEAR, PICTURE, compared, picture


def test_most_measured_rates_are_predicted() -> None:
    points = [*compared()]
    near = Counter(each.broker for each in points if abs(each.off) <= NEAR)
    assert (sum(near.values()), len(points)) == (65, 79)
    assert near == {"rabbitmq": 22, "artemis": 26, "broker-j": 17}


def test_nothing_is_faster_than_predicted() -> None:
    assert max(each.off for each in compared()) < 0.05


def test_the_picture_is_that_of_the_points() -> None:
    assert PICTURE.read_text(encoding="utf-8") == picture([*compared()])
