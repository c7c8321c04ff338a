"""`python -m submerge_fleet` runs the `submerge` command in this interpreter."""

from submerge_fleet.cli import main

if __name__ == "__main__":
    main()
