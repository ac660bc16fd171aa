"""Tiny random models of every family, saved as a user would find them: config, safetensors, tokenizer."""

import json
from pathlib import Path

import pytest
import torch

SENTENCES = [
    "the dog bites the man",
    "the man bites the dog",
    "a cat loves a mouse and a mouse loves a cat",
    "he said that she said that he loves her",
]
SIZES = {
    "bert": {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 32},
    "gpt2": {"n_embd": 24, "n_layer": 2, "n_head": 3},
    "t5": {"d_model": 20, "d_kv": 6, "num_layers": 2, "num_heads": 3, "d_ff": 32},
    "llama": {
        "hidden_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 32,
    },
}


def wordpiece():
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    made.train_from_iterator(SENTENCES, trainers.WordPieceTrainer(vocab_size=60, special_tokens=special))
    made.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return made, {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}


def byte_level(bos: bool = False):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    made.train_from_iterator([*SENTENCES, "我爱你，你爱我"], trainer)
    if bos:
        made.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return made, {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}


def unigram():
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    made = Tokenizer(models.Unigram())
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    special = ["<pad>", "</s>", "<unk>"]
    made.train_from_iterator(
        SENTENCES, trainers.UnigramTrainer(vocab_size=60, special_tokens=special, unk_token="<unk>")
    )
    made.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return made, {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}


def build(name: str):
    """(network, tokenizer, its special tokens) of one family."""
    import transformers as hf

    maker = {"bert": wordpiece, "roberta": lambda: byte_level(True), "t5": unigram}.get(name, byte_level)
    tokenizer, special = maker()
    vocab = {"vocab_size": tokenizer.get_vocab_size()}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return _network(hf, name, vocab), tokenizer, special


def _network(hf, name: str, vocab: dict):
    llama = SIZES["llama"]
    if name == "bert":
        made = hf.BertModel(hf.BertConfig(**vocab, **SIZES["bert"], max_position_embeddings=40))
    elif name == "roberta":
        config = hf.RobertaConfig(**vocab, **SIZES["bert"], max_position_embeddings=42, pad_token_id=1, bos_token_id=0)
        made = hf.RobertaModel(config)
    elif name == "gpt2":
        config = hf.GPT2Config(**vocab, **SIZES["gpt2"], n_positions=40, scale_attn_by_inverse_layer_idx=True)
        made = hf.GPT2LMHeadModel(config)
    elif name == "t5":
        made = hf.T5ForConditionalGeneration(hf.T5Config(**vocab, **SIZES["t5"], decoder_start_token_id=0))
    elif name == "llama":
        made = hf.LlamaForCausalLM(hf.LlamaConfig(**vocab, **llama, rope_theta=500.0))
    elif name == "qwen2":
        config = hf.Qwen2Config(
            **vocab, **llama, use_sliding_window=True, sliding_window=4, max_window_layers=1, tie_word_embeddings=True
        )
        made = hf.Qwen2ForCausalLM(config)
    else:  # heads wider than d_model / n_heads, and a norm on q and k
        made = hf.Qwen3ForCausalLM(hf.Qwen3Config(**vocab, **llama, head_dim=10))
    for key, parameter in made.named_parameters():  # as they start, weights are too small to look anywhere
        parameter.data *= 8 if parameter.dim() > 1 else 1
        if key.endswith("bias"):
            parameter.data += torch.randn_like(parameter) * 0.5
    return made.eval()


def save(name: str, folder: Path) -> Path:
    network, tokenizer, special = build(name)
    network.save_pretrained(folder, safe_serialization=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    about = {"tokenizer_class": "PreTrainedTokenizerFast", **special}
    (folder / "tokenizer_config.json").write_text(json.dumps(about))
    return folder


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """Folder of a tiny model by its family's name, each made once."""
    kept: dict[str, Path] = {}

    def get(name: str) -> Path:
        if name not in kept:
            kept[name] = save(name, tmp_path_factory.mktemp(name))
        return kept[name]

    return get
