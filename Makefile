# The door. Everything works in .venv/ of this checkout, which is made on first use.

PYTHON ?= python3
VENV := .venv
BIN := $(CURDIR)/$(VENV)/bin
LOCK_FLAGS := --quiet --upgrade --universal --python-version 3.10 --generate-hashes --custom-compile-command "make lock"
SOURCES := $(shell find nodeagent native fault_codes meson.build -type f -not -path '*/__pycache__/*')
export PATH := $(BIN):$(PATH)
export PYTHONDONTWRITEBYTECODE := 1

.DEFAULT_GOAL := help
.PHONY: help build demo test test-cluster test-ipmi test-node check bench fleet sanitize docs image lock clean

help: ## show the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/.tools: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "nodeagent needs Python 3.10 or newer, $(PYTHON) is older; name another one: make PYTHON=python3.11"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "no virtual environment could be made: install python3-venv (Debian, Ubuntu) and try again"; exit 1; }
	pip install --quiet --disable-pip-version-check $$(python tools/requirements.py build run test check bench watch lan grpc)
	@touch $@

$(VENV)/.installed: $(VENV)/.tools $(SOURCES) pyproject.toml README.md
	pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps .
	@touch $@

build: $(VENV)/.installed ## build and install into .venv/

demo: build ## nodes whose chips, links and switches break and heal, for about 50 s
	@python tools/demo/demo.py

test: build ## run all tests that need nothing but this checkout
	pytest

test-ipmi: build ## run the tests on a simulated BMC and a real IPMI driver; needs openipmi, qemu, busybox-static
	@python tests/ipmi/build.py
	pytest -m ipmi tests/ipmi_system

test-cluster: build ## run the tests on a real API server (builds one with Go, the first time for 7 minutes)
	@python tests/cluster/build.py
	pytest -m cluster tests/cluster_system

test-node: build ## run the tests in pods of a real node; as root, needs containerd, runc, buildah, debootstrap
	@python tests/cluster/build.py
	pytest -m node tests/node_system

check: build ## linter, types, layers, C warnings, sanitizers, generated documents
	ruff check .
	ruff format --check .
	mypy
	lint-imports --no-cache
	@nodeagent config docs | diff - docs/configuration.md || { echo "docs/configuration.md is old: make docs"; exit 1; }
	@python tools/monitoring/generate.py --check
	@nodeagent table lint fault_codes/chip.yaml fault_codes/link.yaml fault_codes/rules.yaml fault_codes/switch.yaml fault_codes/node.yaml
	tools/sanitize.sh

sanitize: ## stress the shim under AddressSanitizer and ThreadSanitizer
	tools/sanitize.sh

bench: build ## print latencies, costs and footprint
	@python tools/bench/bench.py

fleet: build ## simulate up to 5,000 nodes against a real API server, for about 5 minutes
	@python tools/fleet/fleet.py

docs: build ## write the generated pages
	nodeagent config docs > docs/configuration.md
	python tools/monitoring/generate.py

image: ## build the container image with docker, podman or buildah; IMAGE_FLAGS="--base … --archive …"
	@$(PYTHON) tools/image/build.py $(IMAGE_FLAGS)

lock: $(VENV)/.tools ## choose anew the versions of the packages in the image
	pip install --quiet --disable-pip-version-check $$(python tools/requirements.py lock)
	uv pip compile pyproject.toml --extra lan $(LOCK_FLAGS) -o requirements.lock
	python tools/requirements.py build | uv pip compile - $(LOCK_FLAGS) -o requirements-build.lock

clean: ## remove everything that was made
	rm -rf $(VENV) build tests/cluster/.bin tests/ipmi/.bin .demo .mypy_cache .ruff_cache .pytest_cache .hypothesis
