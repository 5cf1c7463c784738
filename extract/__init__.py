"""Images in, a feature file out: the command ``privfeat-extract``.

Features come from a frozen timm network, or from a wavelet scattering transform that
needs neither torch nor weights. The only contract with ``privfeat`` is the feature
file (``privfeat.data``).
"""

from .errors import ExtractError

__all__ = ["ExtractError"]
