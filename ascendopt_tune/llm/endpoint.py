"""Which model is asked where, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from ..errors import SettingsError
from ..settings import Settings

DEFAULT_URL = "https://api.openai.com/v1"
_MILLION = 1e6


@dataclass(frozen=True)
class Prices:
    """US dollars per million tokens."""

    input: float
    output: float

    def cost(self, prompt_tokens: float, completion_tokens: float) -> float:
        return (self.input * prompt_tokens + self.output * completion_tokens) / _MILLION


@dataclass(frozen=True)
class Endpoint:
    """``model`` answers the online roles, ``model_offline`` the offline ones; ``prices`` None: unknown.

    ``max_reply``: tokens of one reply. ``timeout_s``: seconds of one request. ``replay``: recorded answers only.
    ``max_tokens`` and ``max_money`` (US dollars) end a run.

    Raises:
        SettingsError: ``base_url`` is no URL.
    """

    model: str
    model_offline: str
    base_url: str = DEFAULT_URL
    api_key: str | None = field(default=None, repr=False)
    prices: Prices | None = None
    prices_offline: Prices | None = None
    max_reply: int = 16384
    timeout_s: float = 180.0
    stream: bool = False
    replay: bool = False
    max_tokens: int | None = None
    max_money: float | None = None

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.base_url)
            ok = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        except ValueError:
            ok = False
        if not ok:
            raise SettingsError("the base URL of the language model is no URL.", "Give one such as https://host/v1.")

    @staticmethod
    def of(settings: Settings, *, model: str | None = None, base_url: str | None = None) -> Endpoint | None:
        """The endpoint that is configured, or None: a model, and where to find it (a URL, a key, or recorded answers).

        A key alone configures nothing: other programs have theirs in the environment, too.
        """
        model = model or settings.llm_model
        base_url = base_url or settings.llm_base_url
        if model is None or not (base_url or settings.llm_api_key or settings.llm_replay):
            return None
        prices = Prices(*settings.llm_prices) if settings.llm_prices else None
        offline = Prices(*settings.llm_prices_offline) if settings.llm_prices_offline else prices
        return Endpoint(
            model=model,
            model_offline=settings.llm_model_offline or model,
            base_url=base_url or DEFAULT_URL,
            api_key=settings.llm_api_key,
            prices=prices,
            prices_offline=offline,
            max_reply=settings.llm_max_reply,
            timeout_s=settings.llm_timeout,
            stream=settings.llm_stream,
            replay=settings.llm_replay,
            max_tokens=settings.llm_max_tokens,
            max_money=settings.llm_max_money,
        )

    @property
    def shown_url(self) -> str:
        """The URL without user, password and query: for people and journals."""
        parts = urlsplit(self.base_url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    def model_of(self, offline: bool) -> str:
        return self.model_offline if offline else self.model

    def prices_of(self, offline: bool) -> Prices | None:
        return self.prices_offline if offline else self.prices
