"""The models from outside the catalog that this session has asked for itself; no link can add to them."""

import streamlit as st

_KEY = "_asked_models"


def names() -> tuple[str, ...]:
    return st.session_state.get(_KEY, ())


def add(name: str) -> None:
    st.session_state[_KEY] = tuple(dict.fromkeys((*names(), name)))
