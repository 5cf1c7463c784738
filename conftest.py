"""What holds for every test and doctest: nothing that they draw is left to chance."""

pytest_plugins = ["tests.entropy"]
