#!/usr/bin/env python3
"""Trains the digit classifier of the examples and writes digits/: frozen graph, ten images, TensorFlow's answers.

    make_digits.py [OUTPUT_FOLDER]        (default: digits/ beside this script)

One run takes about a minute. Seeded and on one thread; another processor may still give other last digits.
"""

import pathlib
import sys

import oracle

import numpy as np
import tensorflow as tf
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SIDE = 16
EPOCHS = 40
BATCH = 32

README = """# digits

A small convolutional network that reads a hand-written digit.

| file | what |
| --- | --- |
| `digits.pb` | frozen GraphDef. Input `image`: float32 [?, {side}, {side}, 1], pixel value / 255. Outputs `prob`: float32 [?, 10]; `digit`: int64 [?] |
| `digit_0.png` … `digit_9.png` | one image of each digit, {side} x {side}, 8-bit grey, none of them used in training |
| `inputs.npz`, `expected.npz`, `case.json` | the ten images as one batch (`image:0`), and what TensorFlow {version} answers (`prob:0`, `digit:0`) |

**Data**: scikit-learn's bundled copy of the test set of "Optical Recognition of Handwritten Digits" (E. Alpaydin, C. Kaynak; UCI Machine Learning Repository, CC BY 4.0):
1,797 images of 8 x 8 pixels with 17 levels of grey, scaled up to {side} x {side} (bilinear). {train} were used for training, {held} held out (stratified, seeded).

**Made by** `../make_digits.py` with TensorFlow {version}. **Accuracy** on the held-out images: {accuracy:.2f} % ({right} of {held}).
"""


def pictures():
    """All images as 8-bit pictures of the input size, and their labels."""
    data = load_digits()
    small = np.round(data.images * 255 / 16).astype(np.uint8)
    large = [np.asarray(Image.fromarray(s).resize((SIDE, SIDE), Image.Resampling.BILINEAR)) for s in small]
    return np.stack(large), data.target.astype(np.int64)


def as_input(picture):
    return (picture.astype(np.float32) / np.float32(255))[..., np.newaxis]


def initial_weights(random):
    def he(*shape):
        return random.normal(0, np.sqrt(2 / np.prod(shape[:-1])), shape).astype(np.float32)

    after_pools = (SIDE // 4) ** 2 * 32
    return {
        "conv1/weights": he(3, 3, 1, 16), "conv1/bias": np.zeros(16, np.float32),
        "conv2/weights": he(3, 3, 16, 32), "conv2/bias": np.zeros(32, np.float32),
        "dense1/weights": he(after_pools, 64), "dense1/bias": np.zeros(64, np.float32),
        "dense2/weights": he(64, 10), "dense2/bias": np.zeros(10, np.float32),
    }


def logits(image, w):
    """The network; the same code is trained and then frozen."""
    h = image
    for layer in ("conv1", "conv2"):
        h = tf.raw_ops.Conv2D(input=h, filter=w[f"{layer}/weights"], strides=[1, 1, 1, 1], padding="SAME", name=f"{layer}/conv")
        h = tf.raw_ops.BiasAdd(value=h, bias=w[f"{layer}/bias"], name=f"{layer}/biased")
        h = tf.raw_ops.Relu(features=h, name=f"{layer}/relu")
        h = tf.raw_ops.MaxPool(input=h, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID", name=f"{layer}/pool")
    h = tf.raw_ops.Reshape(tensor=h, shape=tf.constant([-1, w["dense1/weights"].shape[0]], name="flat/shape"), name="flat")
    h = tf.raw_ops.MatMul(a=h, b=w["dense1/weights"], name="dense1/product")
    h = tf.raw_ops.BiasAdd(value=h, bias=w["dense1/bias"], name="dense1/biased")
    h = tf.raw_ops.Relu(features=h, name="dense1/relu")
    h = tf.raw_ops.MatMul(a=h, b=w["dense2/weights"], name="dense2/product")
    return tf.raw_ops.BiasAdd(value=h, bias=w["dense2/bias"], name="logits")


def train(images, labels):
    random = np.random.default_rng(2026)
    weights = {name: tf.Variable(value) for name, value in initial_weights(random).items()}
    optimizer = tf.keras.optimizers.Adam(1e-3)
    optimizer.build(list(weights.values()))

    @tf.function(reduce_retracing=True)
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits(x, weights)))
        gradients = tape.gradient(loss, list(weights.values()))
        optimizer.apply_gradients(zip(gradients, weights.values()))
        return loss

    for epoch in range(EPOCHS):
        optimizer.learning_rate.assign(1e-3 if epoch < EPOCHS * 3 // 4 else 1e-4)
        order = random.permutation(len(images))
        for start in range(0, len(order) - BATCH + 1, BATCH):
            chosen = order[start:start + BATCH]
            # Moved by up to one pixel in each direction, so that the place of a digit matters less.
            moved = [np.roll(images[i], random.integers(-1, 2, 2), (0, 1)) for i in chosen]
            loss = step(tf.constant(np.stack(moved)), tf.constant(labels[chosen]))
    print(f"last loss {float(loss):.5f}")
    return {name: w.numpy() for name, w in weights.items()}


def freeze(weights):
    with tf.Graph().as_default() as graph:
        image = oracle.v1.placeholder(tf.float32, [None, SIDE, SIDE, 1], name="image")
        constants = {name: tf.constant(value, name=name) for name, value in weights.items()}
        out = logits(image, constants)
        tf.raw_ops.Softmax(logits=out, name="prob")
        tf.raw_ops.ArgMax(input=out, dimension=tf.constant(1, name="digit/dimension"), name="digit")
    return graph.as_graph_def()


def classify(graph_def, images):
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
        with oracle.v1.Session(graph=graph, config=oracle.config()) as session:
            return session.run("digit:0", {"image:0": images})


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent / "digits"
    folder.mkdir(parents=True, exist_ok=True)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    images, labels = pictures()
    train_at, held_at = train_test_split(np.arange(len(labels)), test_size=0.2, stratify=labels, random_state=2026)
    graph_def = freeze(train(as_input(images[train_at]), labels[train_at]))

    answers = classify(graph_def, as_input(images[held_at]))
    right = int(np.sum(answers == labels[held_at]))
    accuracy = 100 * right / len(held_at)
    print(f"accuracy on {len(held_at)} held-out images: {accuracy:.2f} %")
    if accuracy < 97:
        raise SystemExit("not good enough")

    chosen = [held_at[np.flatnonzero((labels[held_at] == d) & (answers == d))[0]] for d in range(10)]
    for digit, i in enumerate(chosen):
        Image.fromarray(images[i]).save(folder / f"digit_{digit}.png", optimize=True)
    reread = np.stack([np.asarray(Image.open(folder / f"digit_{d}.png")) for d in range(10)])
    (prob, digit), = oracle.write_case(
        folder, graph_def, [{"feeds": {"image:0": as_input(reread)}, "fetches": ["prob:0", "digit:0"]}],
        graph="digits.pb", tags=["model"])
    if list(digit) != list(range(10)):
        raise SystemExit(f"the ten images are read as {digit}")
    print("lowest probability of the ten:", float(prob.max(axis=1).min()))
    (folder / "README.md").write_text(README.format(
        side=SIDE, version=tf.__version__, train=f"{len(train_at):,}", held=len(held_at), accuracy=accuracy, right=right))


if __name__ == "__main__":
    main()
