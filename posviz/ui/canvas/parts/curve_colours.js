// Colours of curves that are neither A nor B, position nor content: [light theme, dark theme]. The same as
// CURVE_COLOURS in ripple.py.
const CURVES = [
  [[74, 43, 110], [196, 180, 255]],
  [[194, 24, 91], [255, 111, 156]],
  [[20, 121, 168], [92, 200, 242]],
  [[125, 107, 0], [224, 203, 74]],
  [[20, 83, 45], [120, 190, 100]],
  [[160, 65, 196], [224, 130, 245]],
  [[107, 52, 16], [214, 150, 110]],
]
