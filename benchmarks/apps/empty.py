"""The least that a Streamlit page with one slider and one picture can be."""

import io

import streamlit as st
from PIL import Image

st.set_page_config("empty", layout="wide")
value = st.slider("value", 0, 1000, key="value")
picture = io.BytesIO()
Image.new("L", (64, 32), value % 256).save(picture, "png")
st.image(picture.getvalue(), width=640)
