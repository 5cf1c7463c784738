"""What the docstrings of both estimators say in the same words."""

from typing import Any

_PARAMETERS = """model : str, callable or nnx.Module, default="{default}"
        A name of `privfeat.networks.NETWORKS`, a ``simpleVGG-...``, a function
        ``(input_shape, n_outputs, *, rngs) -> nnx.Module``, or a module whose initial
        parameters are public. Default: a small one, as a CPU can train it; no network
        suits all records.
    epsilon : float, optional
        Total budget, > 0; ``inf`` turns noise and clipping off. Default: 1 if no budget
        is given, since no fit may be without noise unasked; 1 itself is a convention.
    delta : float, default=1e-5
        In [1e-9, 1). Default: 1e-5, as in the papers.
    noise_multiplier : float, optional
        Noise of every step instead of ``epsilon``. 0 clips without noise, to find what
        clipping costs (Kurakin et al. 2022, section 3.3): **not private**. The
        statement says that epsilon is infinite, and a ledger refuses it.
    adjacency : {{"add_remove", "replace_one"}}, default="add_remove"
        Default: add/remove, since replace-one needs full batches.
    accounting : {{"exact", "zcdp", "pld", "rdp"}}, optional
        How noise converts to (epsilon, delta). Default: ``"pld"`` for batches, since
        ``"rdp"`` states a few percent more (in milliseconds), and ``"exact"`` for full
        ones, as nothing states less.
    noise : {{"independent", "banded"}}, default="independent"
        ``"banded"``: the noise of a step takes back part of that of the steps before
        (Choquette-Choo et al. 2023), so that steps add up to less noise, and a record
        has a turn in every ``bands``-th step alone. It pays for small batches and large
        epsilons, with ``optimizer="sgd"`` best. In one process. See
        `privfeat.core.bounds.strategy`. Default: independent, since banded noise gained
        3.0 points at epsilon 2 and nothing at 8 (RESULTS, *Noise that later steps take
        back*).
    bands : int, optional
        For banded noise, from 1, which is independent noise, to 256: so many copies of
        the parameters are kept. At most ``n_samples / expected_batch_size``. Default:
        the power of two, up to 32, since prefix sums of gradients have the least noise
        there.
    epochs : float, optional
        Steps are ``epochs * n_samples / expected_batch_size``, rounded up. Default: 10
        for the sake of time, as twice as many gained 1.9 and 1.6 points (RESULTS,
        *Networks without tuning*), and fewer below epsilon 0.65, which no more epochs
        would serve: see `privfeat.networks.training.defaults`.
    n_iter : int, optional
        Number of steps instead of ``epochs``. Default: those of ``epochs``, as steps
        hardly matter: see there.
    expected_batch_size : float, "auto" or None, default="auto"
        Every step takes each record with probability ``expected_batch_size /
        n_samples``. ``"auto"``, the default: the size that makes the epochs of 200
        steps (as 50 and 800 were within two points: RESULTS, *Networks without
        tuning*), or of ``n_iter``, and all records under replace-one. None: all records
        in every step. With groups, read users for records, also for ``epochs`` and
        ``microbatch_size``.
    microbatch_size : int or "largest", optional
        Records that are worked on at a time, dealt out to all local devices: changes
        memory and time alone. At most 256 are, and 32 of each CPU; of each device as
        many as the next power of two below, or fewer, if a trial before the fit shows
        that a record does not count alike in all places. Default: as many as fit in
        about a gibibyte of each, at most 32, since it changes no figure. ``"largest"``
        tries how many half of the host's memory holds, or 0.8 of a device's, whatever
        of it is free, up to that 256 and 32, without groups.
    clipping : {{"fixed", "adaptive"}}, default="fixed"
        ``"adaptive"``: every part of ``clip_style`` is bounded by ``clip_norm`` times
        the mean norm of its gradients, released together with the gradient. Best with
        ``clip_style="layerwise"``. See `privfeat.networks.training.adaptive`. Default:
        fixed, since the best constant bounds were as good (RESULTS, *What the
        parameters of adaptive clipping change*).
    clip_norm : float, tuple of (start, norm), or mapping of name to norm, default=1.0
        Bound on a record's gradient, in [1e-6, 1e6]. A schedule names norms and the
        shares of the fit from which they hold: ``((0.0, 0.1), (0.8, 10.0))``. A mapping
        bounds each part of ``clip_style``, by the longest beginning of its name:
        ``{{"": 0.1, "head": 1.0}}``. Noise is in proportion to the norm of all bounds.
        Default: 1, and no views, as argued in `privfeat.networks.training.defaults`.
    clip_factor : {{"abadi", "automatic", "normalize", "global"}}, default="abadi"
        Default: ``"abadi"``, as in DP-SGD's paper. In single fits on one set
        ``"automatic"`` and ``"normalize"`` were level with it, and ``"global"`` was
        level or worse; more was not measured.
        See `privfeat.networks.engine.clipping`.
    clip_style : {{"flat", "layerwise", "blockwise"}}, default="flat"
        One norm for the whole gradient, or one for each layer or block, each bounded by
        ``clip_norm`` over the square root of their number. Default: flat, as in
        DP-SGD's Algorithm 1, with one bound to choose; others were not measured.
    norm_beta : float, default=2.0
        For adaptive clipping, in [1, 1000]: norms count up to this multiple of the
        bound, the ``beta`` of van der Veen et al. 2018 (``clip_norm`` is their
        ``alpha``). Default: 2, since 1, 4 and 8 lost 3.7, 0.4 and 1.6 points (RESULTS,
        as for ``clipping``).
    norm_share : float, default=0.1
        For adaptive clipping, in [1e-4, 0.15]: the part of the squared sensitivity that
        norms get. The noise of gradients grows by ``1 / sqrt(1 - norm_share)``.
        Default: 0.1, as 0.025 to 0.15 differ by half a point (RESULTS, likewise).
    initial_clip_norm : float, optional
        For adaptive clipping: the first bound of every part, in [1e-6, 1e6]. Default:
        ``clip_norm`` times the mean norm on random inputs, as that needs no record.
    engine : {{"auto", "fast", "reference"}}, default="auto"
        ``"auto"``, the default, is as fast as it can show to be right: fast for named
        networks, and with ``trust_model`` for those that are made of
        ``privfeat.networks.layers``. ``"reference"`` shows the network one record at a
        time.
    trust_model : bool, default=False
        Whether you vouch that a ``model`` that is no name treats every record by
        itself, whatever the records and the size of the batch. The fast engine may then
        train it, and ``privacy_.public`` says so. If you are wrong, **the statement is
        wrong**. Default: False, since only you can know.
    optimizer : str or optax optimizer, optional
        ``"adam"``, ``"adamw"``, ``"heavy_ball"``, ``"nesterov"``, ``"rmsprop"``,
        ``"sgd"``, ``"sghmc"`` or ``"sgld"``. An optax optimizer brings its own rate and
        decay. Default: ``"adam"``, since its rate needs no tuning (``"heavy_ball"`` was
        above it at one rate, RESULTS, *Figures of the papers on small sets*); with
        groups ``"sgd"`` at rate 1, the mean of the updates.
    learning_rate : float, optional
        Peak rate, > 0, for averages over the expected batch. Default: of ``"adam"``,
        ``"adamw"`` and ``"rmsprop"``, for a network from scratch, ``1.5 sqrt(m / (d
        n_iter))`` for layers with ``d`` weights and ``m`` outputs together, as noise
        alone then moves weights by 1.5 times what they began with: no other multiple
        was better (RESULTS, *Networks without tuning*). Otherwise 0.001: with
        ``weights``, a module for ``model``, groups, or another optimizer, for which no
        rate was measured.
    schedule : {{"constant", "cosine"}}, default="constant"
        Default: constant, as the simplest; the cosine was not measured beside it.
    warmup_steps : int, default=0
        Steps of linear increase before the schedule. Default: none, as it was not
        measured.
    weight_decay : float, default=0.0
        Default: none, as noise already limits what a fit can learn; not measured.
    momentum : float, optional
        What ``"sgd"``, ``"heavy_ball"``, ``"nesterov"`` and ``"sghmc"`` keep of the sum
        of past gradients, in [0, 1]. Default: 0 for ``"sgd"``, as its name says, and
        0.9 for the others, since that was 12.1 points above 0 (RESULTS, *Figures of the
        papers on small sets*).
    dampening : float, default=0.0
        What ``"sgd"`` and ``"heavy_ball"`` with momentum leave out of each gradient but
        the first, in [0, 1], as in PyTorch, with its default; 0.9 was 6.7 points below
        at the better rates (RESULTS, likewise).
    ema_decay : float, optional
        Keep the exponential moving average of the parameters, in [0, 1]. Default: none,
        since an average of the parameters changed accuracy by 0.0 points (RESULTS,
        *Figures of the papers on small sets*).
    average_from : float, optional
        Instead, keep the plain mean of the parameters over the steps after this share
        of the fit, in [0, 1]: Polyak-Ruppert averaging. Default: none, as of
        ``ema_decay``.
    augmentation : str, default="none"
        ``"none"``, ``"crop_flip"``, ``"crop_jitter"``, ``"resized_crop"``, ``"simclr"``
        or ``"simclr_blur"``: see `privfeat.networks.images.augment`. For images.
        Default: none, as argued for ``n_copies``.
    n_copies : int, default=1
        Views of each record whose gradients are averaged before they are clipped.
        Default: 1, since four lost 1.1 and 1.3 points at four times the cost (RESULTS,
        *Networks without tuning*).
    n_votes : int, default=1
        Views of each record whose scores are averaged for a prediction; 1 is the record
        itself. Default: 1, since four views lost 0.8 points to it (RESULTS, *Figures of
        the papers on small sets*).
    frozen : tuple of str, int, "all_but_head" or "all_but_last_block", default=()
        Beginnings of names of parameters that stay as they are; or how many groups of
        blocks do, with all that comes before them: 0 to 4 for a ViT, a ResNet or a
        MobileNetV2, of which 4 trains the head, and the last norm if there is one.
        ``"all_but_head"`` trains the logits alone, as the 4 groups of Kurakin et al.
        2022 do, ``"all_but_last_block"`` the last block of layers and the norm behind
        it as well. Default: nothing, as a network from scratch has nothing to keep.
    weights : path or mapping of name to array, optional
        A ``.safetensors`` file of timm for ``vit_*``, ``resnet50``, ``nf_resnet50`` or
        ``mobilenetv2_100``, public: see `load_timm_weights`. Or ``parameters_`` of a
        model of this library, of which a head of another size is replaced: they become
        public, what a private fit has cost for them stays what it was, and bytes are
        mapped to [-1, 1]. Nothing here can see that they are of a fit without privacy:
        its records must be public.
    max_group_size : int, optional
        For the privacy of users, together with ``groups`` in ``fit``: how many records
        of a user count, >= 1, others being dropped at random. The noise does not grow
        with it. See `privfeat.networks.training.federated`.
    local_epochs : int, default=1
        With groups: passes over a user's records that make one update, at a rate of
        ``local_learning_rate``, in batches of ``local_batch_size``. Default: 1, as a
        pass costs time alone; more were not measured.
    local_batch_size : int, optional
        Default: all records of the user, as the simplest; others were not measured.
    local_learning_rate : float, optional
        Default: 0.1, which was not measured beside others.
    ledger : PrivacyLedger, optional
        Charged before any noise is drawn; a ``fit`` that its budget has no room for
        fails and changes nothing. Copies of the estimator charge the same budget.
    checkpoint_dir : path, optional
        A folder for checkpoints, of this fit alone. Where it holds one of an
        interrupted fit, ``fit`` warns and goes on from there, charged once; it must be
        given the same parameters, and the same data if it is to be their model. Where
        it holds a finished fit, ``fit`` is an error, and ``restore()`` returns it. Of
        several processes the first alone uses it.
    checkpoint_every : int, default=100
        Steps between checkpoints; there is one at the end as well. With banded noise
        rounded up to a multiple of ``bands``. Noise after a checkpoint takes nothing
        back of that before it, so that a checkpoint need not hold noise. Default: 100,
        as a convention: it costs time alone.
    on_step : callable, optional
        Called as ``on_step(step, model)`` after each step, from 1 on, but with
        ``checkpoint_dir`` after each checkpoint: steps that are lost with a process are
        made again, and count once if none was seen. ``model`` is what ``fit`` would
        return there, made of releases alone, so that curves of it on public records
        cost nothing. What it computes from private ones is a release that no statement
        covers. What it returns is not used; what it raises ends the fit, whose budget
        is spent. One that does not take both arguments is refused before. Of several
        processes the first alone calls it.
    random_state : int, RandomState or None, default=None
        Default: None, which takes entropy of the operating system, since noise protects
        only while nobody can guess it. An integer is for tests: not private.
    verbose : int, default=0
        Positive tells on stderr what the fit costs and shows its steps: as a bar on a
        terminal or in a notebook, elsewhere as at most a line a minute."""

_GUARANTEES = """**Guarantee.** Every step releases one sum of clipped gradients,
    in units of the clip norm, with Gaussian noise of stddev ``noise_multiplier``;
    Poisson sampling is accounted by privacy loss distributions. An empty sample takes a
    noisy step too. With banded noise that is the stddev of the independent noise which
    it is made of. With groups, updates of users stand for gradients of records.

    **Public.** See ``privacy_.public``.

    **Several processes.** Inside `privfeat.distributed.all_processes` they share the
    batches of every step: the network is that of one process with the same seed, bit
    for bit where each has as many devices and cores as that one, and the cost the same.
    All must have devices of one kind and number. Exact sums and samples travel between
    them.

    **Not protected.** Timing and memory, which tell how many records a step drew, and
    reads from disk, which tell whose they are, of records that are read late; the low
    bits of floating-point noise; seeds; tuning over many fits. Sums of gradients are
    free of rounding (`privfeat.core.sums.batches`), if compiled code rounds a record's
    gradient alike in every slot of a physical batch: each fit tries that first."""

_ATTRIBUTES = """parameters_ : dict of name to array
        The trained network.
    privacy_ : PrivacyStatement
    n_iter_ : int
        Number of noisy steps.
    input_shape_ : tuple of int
        Shape of a record.
    feature_names_in_ : array of shape (n_features,)
        Where ``X`` was a table whose columns have names.
    n_outputs_ : int"""


def document(cls: Any) -> Any:
    """Fill the shared parts into the docstring of an estimator."""
    default = cls().model
    cls.__doc__ = cls.__doc__.format(
        parameters=_PARAMETERS.format(default=default),
        guarantees=_GUARANTEES,
        attributes=_ATTRIBUTES,
    )
    return cls
