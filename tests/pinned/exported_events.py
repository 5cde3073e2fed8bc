"""Events as repr() of dp_accounting 0.4.3 writes them, the release that TensorFlow Privacy 0.9.0 pins."""

EVENTS = {
    "SelfComposedDpEvent(event=PoissonSampledDpEvent(sampling_probability=0.01, "
    "event=GaussianDpEvent(noise_multiplier=1.1)), count=100)": (
        'Gaussian(sigma=1.1, relation="add-remove") @ Poisson(rate=0.01) * 100'
    ),
    "ComposedDpEvent(events=[GaussianDpEvent(noise_multiplier=2.0), LaplaceDpEvent(noise_multiplier=3)])": (
        'Gaussian(sigma=2, relation="add-remove") + Laplace(scale=3, relation="add-remove")'
    ),
    "GaussianDpEvent(noise_multiplier=4)": 'Gaussian(sigma=4, relation="add-remove")',
}
"""The text of an event, and the expression that it is under ADD_OR_REMOVE_ONE."""
