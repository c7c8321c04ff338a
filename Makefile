# Each target sets up what it needs in .venv, from nothing but Python and make.
PYTHON ?= python3
BIN := .venv/bin
# Two workers; one that has nothing left takes over what waits at the other.
WORKERS ?= 2
PYTEST := $(BIN)/pytest -n $(WORKERS) --dist worksteal
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: demo test test-flower check other soak bench docs proto lock release clean

demo: .venv/lab  ## run the whole system on generated data, and draw demo.png
	$(BIN)/submerge demo --plot demo.png

# `make test MARKED=slow` leaves out what `make check` has run.
test: .venv/dev  ## run all tests but those of `make soak`, slow ones included
	$(PYTEST) -q $(if $(MARKED),-m "$(MARKED)")

test-flower: .venv-flower/dev  ## run the example in Flower's simulation, in an environment of its own
	.venv-flower/bin/pytest -q -p no:cacheprovider examples/flower

# One house: `make check PART=client`. Types are those of the whole: what a house gives is used elsewhere.
check: .venv/dev  ## run before each commit: format, lint, types, imports, fast tests; PART: of one house
	$(BIN)/ruff format --check $(if $(PART),$(PART) tests/$(PART),.)
	$(BIN)/ruff check $(if $(PART),$(PART) tests/$(PART),.)
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(PYTEST) -q -m "not slow" $(if $(PART),tests/$(PART))
	@$(if $(PART),,$(BIN)/python benchmarks/recorded.py)  # no failure: which pages of figures are older than their code

# Fast tests of the wheels by another Python, with another NumPy, in an environment of their own.
# Arithmetic is the same on any: few examples of each law show whether calls still fit.
OTHER ?= python3.13
NUMPY ?= numpy
TESTS ?= $(filter-out $(patsubst %,tests/%/,support golden scenarios docs benchmarks browser live leaf),$(wildcard tests/*/))

other: .venv/dev  ## run fast tests on another Python and NumPy: OTHER=python3.11 NUMPY='numpy==1.26.*'
	rm -rf build/$(OTHER)
	$(BIN)/python -m build --wheel --outdir build/$(OTHER) . >/dev/null
	$(BIN)/python -m build --wheel --outdir build/$(OTHER) lab >/dev/null
	$(OTHER) -m venv build/$(OTHER)/venv
	build/$(OTHER)/venv/bin/pip install --quiet --disable-pip-version-check \
	  "$$(echo build/$(OTHER)/submerge-*.whl)[sklearn,notify]" build/$(OTHER)/submerge_lab-*.whl "$(NUMPY)" pytest pytest-xdist hypothesis
	HYPOTHESIS_PROFILE=few build/$(OTHER)/venv/bin/pytest -n $(WORKERS) --dist worksteal -q \
	  -m "not slow" -p no:cacheprovider $(TESTS)

# Seeds of each kind, and the first: another one each night.
SOAK ?= 2000
FIRST ?= $(shell expr $$(date +%s) / 86400 \* 10000)
SIMULATE := $(BIN)/submerge lab simulate --jobs $(WORKERS) --seed $(FIRST)

soak: .venv/dev  ## run each night: tests of tests, other Pythons, simulated fleets with all faults, for hours
	$(PYTEST) -q -m soak
	SUBMERGE_SOAK=1 $(PYTEST) -q tests/lab/simulator tests/core/jobs/test_hostile_share.py
	@for each in python3.12 python3.13 python3.14; do \
	  if $$each -c '' 2>/dev/null; then $(MAKE) other OTHER=$$each || exit 1; \
	  else echo "no $$each here: fast tests have not run on it"; fi; done
	$(MAKE) other OTHER=python3.11 NUMPY='numpy==1.26.*'
	$(SIMULATE) --faults all-1 --seeds $(SOAK)
	$(SIMULATE) --faults channels-1 --seeds $$(expr $(SOAK) / 10)
	$(SIMULATE) --faults channels-1 --learn-scaling --seeds $$(expr $(SOAK) / 10)
	$(SIMULATE) --faults hostile-1 --nodes 4 --fan-in 2 --depth 2 --hours 2 --seeds $(SOAK)
	$(SIMULATE) --faults all-1 --dim 8 --rank 4 --oversample 4 --seeds $$(expr $(SOAK) / 10)
	$(SIMULATE) --faults all-1 --dim 8 --rank 4 --kernel gaussian --seeds $$(expr $(SOAK) / 20)
	$(BIN)/submerge lab simulate-jobs --processes $(WORKERS) --seed $(FIRST) --seeds $$(expr $(SOAK) / 5)

# Smaller and fewer, into build/: the committed results stay. `make bench FULL=1` measures them again.
bench: .venv/bench  ## compare with other libraries and papers, in short; FULL=1: the committed pages
	$(BIN)/python benchmarks/ratios.py --append
ifdef FULL
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/papers/every.py
	$(BIN)/python benchmarks/evidence/every.py
else
	mkdir -p build
	$(BIN)/python benchmarks/run.py --quick --output build/results.md
	$(BIN)/python benchmarks/papers/every.py --quick --into build/papers
	$(BIN)/python benchmarks/evidence/every.py --quick --into build/evidence
endif

docs: .venv/docs  ## build the documentation in build/site; a warning or a dead link is an error
	$(BIN)/sphinx-build --quiet --fail-on-warning --fresh-env --write-all \
	  --conf-dir docs --doctree-dir build/doctrees . build/site
	@echo "build/site/index.html"

proto: .venv-proto/proto  ## regenerate the code of the wire format
	.venv-proto/bin/python -m grpc_tools.protoc -I proto --python_out=proto --pyi_out=proto \
	  proto/submerge_proto/*.proto proto/submerge_proto/v1/*.proto

# With the images' Python: `make lock LOCK_PYTHON=python3.13` for other images. No image needs
# SciPy: `submerge model compare` runs elsewhere, on saved models.
LOCK_PYTHON ?= python3.12
DEB12_PYTHON ?= python3.11
LOCKS := deploy/requirements
LOCK := env CUSTOM_COMPILE_COMMAND="make lock" .venv-lock/bin/pip-compile --quiet --upgrade \
  --generate-hashes --strip-extras --no-annotate --unsafe-package scipy --unsafe-package submerge \
  --no-emit-index-url --no-emit-find-links --no-emit-trusted-host

lock:  ## update what the images install, with hashes
	$(LOCK_PYTHON) -m venv .venv-lock
	.venv-lock/bin/python -m pip install --quiet --disable-pip-version-check 'pip-tools>=7.4'
	$(LOCK) --build-deps-for wheel --only-build-deps -o $(LOCKS)/build.lock pyproject.toml
	$(LOCK) --extra aggregator -o $(LOCKS)/aggregator.lock pyproject.toml
	$(LOCK) --extra client --extra host -o $(LOCKS)/client.lock pyproject.toml
	$(LOCK) --extra pki -o $(LOCKS)/pki.lock pyproject.toml
	$(subst --unsafe-package scipy,,$(LOCK)) -o $(LOCKS)/wheel.lock pyproject.toml
	$(LOCK) -o $(LOCKS)/release.lock $(LOCKS)/release.in
	$(DEB12_PYTHON) -m venv .venv-lock-deb12
	.venv-lock-deb12/bin/python -m pip install --quiet --disable-pip-version-check 'pip-tools>=7.4'
	$(subst .venv-lock/,.venv-lock-deb12/,$(LOCK)) --extra client --extra host -o $(LOCKS)/deb12.lock pyproject.toml
	@# pip-compile ends with a warning about the two that are left out on purpose.
	sed -i.bak '/^# WARNING: The following packages were not pinned/,$$d' $(LOCKS)/*.lock
	rm -f $(LOCKS)/*.bak

# Two builds of one commit are the same bytes: all times are the commit's, all tools are locked.
RELEASE := SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) .venv-release/bin/python

release: .venv-release/lock  ## build sdists, wheels, Debian packages and SBOMs of the commit into dist/, with checksums
	@test -z "$$(git status --porcelain)" || { echo "expected a commit, got changed files: commit them, or git stash -u"; exit 2; }
	rm -rf dist
	$(RELEASE) -m build --no-isolation --outdir dist . >/dev/null
	$(RELEASE) -m build --no-isolation --outdir dist lab >/dev/null
	$(RELEASE) deploy/release.py
	cd dist && sha256sum -- * >SHA256SUMS && cat SHA256SUMS

clean:
	rm -rf .venv .venv-flower .venv-lock* .venv-proto .venv-release dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache demo.png
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The generator is old on purpose, and needs an environment of its own.
.venv-proto/proto: pyproject.toml
	$(PYTHON) -m venv .venv-proto
	.venv-proto/bin/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["proto"], sep="\n")' >.venv-proto/wanted
	.venv-proto/bin/python -m pip install --quiet --disable-pip-version-check -r .venv-proto/wanted
	@touch $@

.venv-release/lock: $(LOCKS)/release.lock
	$(PYTHON) -m venv .venv-release
	.venv-release/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r $<
	@touch $@

# Flower pins versions of protobuf and rich that are not ours.
.venv-flower/dev: pyproject.toml
	$(PYTHON) -m venv .venv-flower
	.venv-flower/bin/python -m pip install --quiet --disable-pip-version-check \
	  --editable . 'flwr[simulation]>=1.42' pytest
	@touch $@

# Each set of extras has one stamp file. A change of pyproject.toml installs them again.
.venv/%: pyproject.toml lab/pyproject.toml
	@test -x $(BIN)/python || { \
	  $(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if v >= (3, 11) \
	    else "submerge needs Python 3.11 or later, got %d.%d: make PYTHON=python3.12" % v)' \
	  && echo "setting up .venv (once)" && $(PYTHON) -m venv .venv; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.$(if $(filter lab,$*),,[$*])' \
	  $(if $(filter lab dev bench,$*),--editable ./lab)
	@touch $@
