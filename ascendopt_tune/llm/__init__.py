"""The language model: any endpoint that speaks OpenAI's chat-completions protocol.

1. ``endpoint.py``: which model is asked where, and what it costs; made from the settings.
2. ``client.py``: a request with its retries, limits and accounting; ``store.py`` keeps every answer, so the same prompt
   has the same answer, also with no network.
3. ``prompts.py`` and ``prompts/*.md``: what a model is told; ``facts.py``: the chip, the case, the profile and the
   history in words.
4. ``replies.py``: from a reply to changed files, leniently read and strictly checked; ``dialogue.py`` tells a model
   what was wrong with its reply.
5. ``roles.py``: template synthesis, rewind, distillation. The online roles are proposers: ``llm/proposers.py``.

A model's answer is never trusted: it can change nothing but the sources of a candidate, which the gate then judges.
"""
