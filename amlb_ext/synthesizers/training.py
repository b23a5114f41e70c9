"""Gradient steps for small networks on one core: schedule, clipping, early stopping.

On networks of this size a step is bound by calls, not by arithmetic. With all parameters in one
flat vector AdamW and the clipping of the gradient take a few calls, whatever the number of layers.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw

#: First and last rate of AdamW, half a cosine between them, and the largest gradient (Table 2).
RATES = (1e-3, 1e-4)
CLIP = 3.0
#: Looks at the held-out rows in a training, and how many without a gain end it.
CHECKS, PATIENCE = 40, 6

#: loss(rows, done): of the rows at these positions, after a share ``done`` of the training.
Loss = Callable[[Tensor, float], Tensor]


class FlatAdamW:
    """AdamW (Loshchilov & Hutter 2019) on all parameters as one, the gradient held at ``CLIP``.

    NOTE[OWN]: torch's function of one step, not its class ``AdamW``, which imports torch's
    compiler: a second of processor time and 70 MB in every worker, for a compiler that is never
    used. The weights are the same, bit by bit.

    Attributes
    ----------
    w : Parameter
        The flat vector of which the network's parameters become views.

    Examples
    --------
    >>> layer = nn.Linear(1, 1, bias=False)
    >>> _ = nn.init.constant_(layer.weight, 1.0)
    >>> optimizer = FlatAdamW(layer)
    >>> layer(torch.ones(1, 1)).sum().backward()
    >>> optimizer.step(0.1)  # the first step is the rate, and the decay .1 · .01
    >>> round(layer.weight.item(), 4)
    0.899
    """

    def __init__(self, network: nn.Module) -> None:
        parameters = list(network.parameters())
        flat = []
        for p in parameters:
            # in the order of memory, so that channels that stand last keep their place
            in_memory = p.detach().as_strided((p.numel(),), stride=(1,))
            flat.append(in_memory)
        self.w = nn.Parameter(torch.cat(flat))
        self.w.grad = torch.zeros_like(self.w)
        start = 0
        for p in parameters:
            shape = p.shape
            stride = p.stride()
            p.data = self.w.data.as_strided(shape, stride, start)
            p.grad = self.w.grad.as_strided(shape, stride, start)
            start += p.numel()
        self._mean = torch.zeros_like(self.w)
        self._mean_square = torch.zeros_like(self.w)
        self._n_steps = torch.zeros((), device=self.w.device)

    def step(self, rate: float) -> None:
        """Move w along the gradients, which return to zero."""
        nn.utils.clip_grad_norm_([self.w], CLIP)
        gradient = self.w.grad
        assert gradient is not None
        with torch.no_grad():
            adamw(
                params=[self.w],
                grads=[gradient],
                exp_avgs=[self._mean],
                exp_avg_sqs=[self._mean_square],
                max_exp_avg_sqs=[],
                state_steps=[self._n_steps],
                lr=rate,
                fused=True,
                # torch's defaults
                beta1=0.9,
                beta2=0.999,
                weight_decay=1e-2,
                eps=1e-8,
                amsgrad=False,
                maximize=False,
            )
        gradient.zero_()


def train_network(
    network: nn.Module,
    loss: Loss,
    *,
    learn: Tensor,
    held: Tensor,
    batch: int,
    steps: int,
    pace: float = 1.0,
) -> int:
    """Take gradient steps; return how many until the weights that are kept.

    The weights with the least loss on the held-out rows are kept, counted from half of the
    steps on, when the KL weight has begun to bite; ``PATIENCE`` looks without a gain end the
    training.

    Parameters
    ----------
    network : Module
    loss : callable
        At the held-out rows it is asked for ``done`` = 1, so that looks compare.
    learn, held : Tensor of int64
        Positions of the rows to learn from and of the held-out rows, maybe none.
    batch, steps : int
    pace : float
        What the first rate is multiplied by: fewer steps are larger ones.
    """
    first_rate, last_rate = RATES
    first_rate *= pace
    optimizer = FlatAdamW(network)
    batches: list[Tensor] = []
    least_loss = math.inf
    # without held-out rows, the last weights
    kept = optimizer.w.detach()
    kept_at = steps
    every = max(1, steps // CHECKS)
    for step in range(1, steps + 1):
        done = (step - 1) / steps
        # an epoch begins: the rows in another order, drawn on the processor
        if not batches:
            order = torch.randperm(len(learn))
            shuffled = learn[order.to(learn.device)]
            batches = list(shuffled.split(batch))
        rows = batches.pop()
        loss(rows, done).backward()
        # half a cosine from the first rate to the last
        share = (1 + math.cos(math.pi * done)) / 2
        optimizer.step(last_rate + (first_rate - last_rate) * share)
        is_second_half = 2 * step >= steps
        is_look = step % every == 0 or step == steps
        if len(held) and is_second_half and is_look:
            with torch.no_grad():
                held_loss = float(loss(held, 1.0))
            if held_loss < least_loss:
                least_loss = held_loss
                kept = optimizer.w.detach().clone()
                kept_at = step
            elif step - kept_at >= PATIENCE * every:
                break
    with torch.no_grad():
        optimizer.w.copy_(kept)
    return kept_at
