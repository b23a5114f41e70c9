"""F behind an address: a deployed model that answers over HTTP.

A question is one POST of some rows as JSON records (or as an Arrow stream), the answer one number,
or one probability for each class, for each row; ``docs/how-to/in_context.md`` documents both.
Whatever else comes back is one clear error.

``options`` the address and its parameters → ``answers`` what comes back → ``transport`` one
question, tried again → ``model`` all of it as a model of scikit-learn.
"""

from amlb_ext.models.service.model import RemoteModel, connect_service
from amlb_ext.models.service.options import (
    ServiceOptions,
    check_service,
    is_service,
)

__all__ = [
    "RemoteModel",
    "ServiceOptions",
    "check_service",
    "connect_service",
    "is_service",
]
