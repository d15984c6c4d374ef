"""vLLM's plug-in: Fovea as the attention backend CUSTOM, for models without a cache.

vLLM calls :func:`register` by the entry point ``fovea`` of the group
``vllm.general_plugins``; models take it by ``--attention-backend CUSTOM``. docs/Python.md
says what is served.
"""

from __future__ import annotations

import logging

__all__ = ["register"]

_log = logging.getLogger("fovea")
_BACKEND = "fovea._vllm.FoveaAttentionBackend"


def register() -> None:
    """Registers the backend, once; CUSTOM that is another's is left to it."""
    from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend

    custom = AttentionBackendEnum.CUSTOM
    if custom.is_overridden():
        if custom.get_path() != _BACKEND:
            _log.warning("vLLM's attention backend CUSTOM is %s already, and not Fovea's; "
                         "VLLM_PLUGINS=fovea loads Fovea's plug-in alone", custom.get_path())
        return
    register_backend(custom, _BACKEND)
