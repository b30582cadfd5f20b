"""A Llama of Hugging Face's transformers whose norms a tuned operator serves. Needs torch, torch_npu, transformers.

The model is small and has random weights: nothing is downloaded. On the virtual NPU all times are modelled.
"""

from __future__ import annotations

import ascendopt_tune as aot  # before torch: it is what lets torch_npu start without CANN

import torch  # isort: skip
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.models.llama import modeling_llama


@aot.tune("rms_norm", budget=2)  # budget: evaluations per case; the default is 40
def rms_norm(x: torch.Tensor, gamma: torch.Tensor, epsilon: float) -> torch.Tensor:
    """The original: what LlamaRMSNorm computes."""
    wide = x.float()
    return gamma * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + epsilon)).to(x.dtype)


def forward(norm: torch.nn.Module, hidden_states: torch.Tensor) -> torch.Tensor:
    return rms_norm(hidden_states, norm.weight, norm.variance_epsilon)


def main() -> None:
    torch.manual_seed(0)
    shape = {"hidden_size": 128, "intermediate_size": 256, "num_attention_heads": 2, "num_key_value_heads": 2}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=256, num_hidden_layers=2, **shape))
    model.npu().eval().requires_grad_(False)
    prompt, one = torch.arange(16)[None].npu(), torch.arange(1)[None].npu()
    with torch.no_grad():
        expected = model(prompt).logits.cpu()
        modeling_llama.LlamaRMSNorm.forward = forward
        print(aot.warmup(model, [prompt, one]))
        torch.testing.assert_close(model(prompt).logits.cpu(), expected, rtol=1e-3, atol=1e-3)
        tokens = model.generate(prompt, max_new_tokens=2, do_sample=False, pad_token_id=0)
    print(f"the logits are those of before; generated {tokens.shape[1] - prompt.shape[1]} tokens")
    print(aot.status())


if __name__ == "__main__":
    main()
