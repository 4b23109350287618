"""Painting crowds: small solid people and things on a textured ground, seen through a camera, in some weather."""
