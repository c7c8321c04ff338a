"""`python -m submerge_operate` runs the `submerge` command in this interpreter."""

from submerge_operate.cli import main

if __name__ == "__main__":
    main()
