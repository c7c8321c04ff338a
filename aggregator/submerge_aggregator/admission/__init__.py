"""Admission: which node may join, report and watch, by certificate, roster, store and settings."""
