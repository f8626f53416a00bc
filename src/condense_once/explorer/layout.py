"""Positions of patches on a map: similar features are neighbours."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.floating]

DIMENSIONS = 30  # of the principal components that t-SNE sees
LANDMARKS = 800  # patches that t-SNE places; all others go beside their nearest landmarks
PERPLEXITY = 20.0
ITERATIONS = 300
EXAGGERATED = 80  # iterations with attraction multiplied, so that clusters form first
EXAGGERATION = 12.0
NEIGHBOURS = 3  # landmarks that place a patch
EVENNESS = 0.5  # 0: as t-SNE leaves them; 1: evenly spread along both axes


def map_positions(features: NDArray[np.floating], landmarks: int = LANDMARKS) -> Points:
    """Positions `[N, 2]` in 0…1 of patches with features `[N, d]`: t-SNE of their principal components. Deterministic."""
    reduced = principal_components(features, DIMENSIONS)
    count = len(reduced)
    if count < 5:  # too few for neighbourhoods
        return spread(np.pad(reduced, ((0, 0), (0, 2)))[:, :2])
    chosen = np.unique(np.linspace(0, count - 1, min(count, landmarks)).round().astype(np.int64))
    placed = tsne(reduced[chosen])
    if len(chosen) == count:
        return spread(placed)
    positions = np.empty((count, 2))
    for start in range(0, count, 2048):
        positions[start : start + 2048] = _beside(reduced[start : start + 2048], reduced[chosen], placed)
    positions[chosen] = placed
    return spread(positions)


def principal_components(features: NDArray[np.floating], most: int) -> Points:
    """The first components `[N, ≤ most]`, by decreasing variance; signs are fixed so that results are reproducible."""
    centred = np.asarray(features, np.float64) - features.mean(0, dtype=np.float64)
    _, axes = np.linalg.eigh(centred.T @ centred)
    axes = axes[:, ::-1][:, :most]
    largest = np.abs(axes).argmax(0)
    return np.asarray(centred @ (axes * np.sign(axes[largest, np.arange(axes.shape[1])])))


def tsne(points: Points) -> Points:
    """t-SNE in the plane (van der Maaten and Hinton, 2008), exact, from the first two principal components."""
    count = len(points)
    attraction = _affinities(points, min(PERPLEXITY, (count - 1) / 3)).astype(np.float32)
    start = np.pad(points, ((0, 0), (0, 2)))[:, :2]
    plane = (1e-4 * start / max(float(start.std()), 1e-12)).astype(np.float32)
    velocity, gain = np.zeros_like(plane), np.ones_like(plane)
    rate = np.float32(max(count / EXAGGERATION / 4, 50.0))
    for iteration in range(ITERATIONS):
        early = iteration < EXAGGERATED
        near = _squared_distances(plane)
        near += 1
        np.reciprocal(near, out=near)
        np.fill_diagonal(near, 0)
        force = near * (-1 / near.sum())
        force += attraction * EXAGGERATION if early else attraction
        force *= near
        gradient = 4 * (force.sum(1)[:, None] * plane - force @ plane)
        gain = np.where(np.sign(gradient) == np.sign(velocity), gain * 0.8, gain + 0.2).clip(0.01)
        velocity = (0.5 if early else 0.8) * velocity - rate * gain * gradient
        plane = plane + velocity
        plane -= plane.mean(0)
    return plane.astype(np.float64)


def spread(positions: Points) -> Points:
    """Positions in 0…1, half-way to an even density along both axes, so that fewer pictures overlap."""
    low, high = positions.min(0), positions.max(0)
    scaled = (positions - low) / np.where(high > low, high - low, 1)
    ranks = np.argsort(np.argsort(positions, axis=0, kind="stable"), axis=0) / max(len(positions) - 1, 1)
    return np.asarray((1 - EVENNESS) * scaled + EVENNESS * ranks)


def _affinities(points: Points, perplexity: float) -> Points:
    """Symmetric neighbour probabilities; the width of every Gaussian is found by bisection."""
    distances = _squared_distances(points)
    np.fill_diagonal(distances, np.inf)
    distances -= distances.min(1, keepdims=True)
    np.fill_diagonal(distances, np.inf)
    scale = np.where(np.isfinite(distances), distances, 0).sum(1) / len(points)
    low, high = np.full(len(points), -40.0), np.full(len(points), 40.0)
    for _ in range(50):
        beta = np.exp((low + high) / 2) / np.maximum(scale, 1e-12)
        near = np.exp(-distances * beta[:, None])
        share = near / near.sum(1, keepdims=True)
        entropy = -(share * np.log(np.maximum(share, 1e-300))).sum(1)
        wide = entropy > np.log(perplexity)
        low, high = np.where(wide, (low + high) / 2, low), np.where(wide, high, (low + high) / 2)
    return np.asarray((share + share.T) / (2 * len(points)))


def _beside(points: Points, landmarks: Points, placed: Points) -> Points:
    """Positions between those of the nearest landmarks, closer to closer ones."""
    distances = (points**2).sum(1)[:, None] + (landmarks**2).sum(1) - 2 * points @ landmarks.T
    nearest = np.argpartition(distances, NEIGHBOURS, axis=1)[:, :NEIGHBOURS]
    weights = 1 / (np.take_along_axis(distances, nearest, axis=1).clip(0) + 1e-9)
    return np.asarray((placed[nearest] * (weights / weights.sum(1, keepdims=True))[..., None]).sum(1))


def _squared_distances(points: Points) -> Points:
    squares = (points**2).sum(1)
    distances = points @ points.T
    distances *= -2
    distances += squares
    distances += squares[:, None]
    return np.maximum(distances, 0, out=distances)
