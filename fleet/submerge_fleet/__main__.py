"""`python -m submerge_fleet` is the `submerge` command, of this very interpreter."""

from submerge_fleet.cli import main

if __name__ == "__main__":
    main()
