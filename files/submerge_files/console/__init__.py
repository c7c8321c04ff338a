"""What several commands share: options, units, progress, pictures, and the admin API's client."""
