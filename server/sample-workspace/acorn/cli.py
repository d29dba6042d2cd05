"""The command line: `python -m acorn.cli FOLDER put|get|delete|keys|compact …`."""

import argparse
import sys

from .store import Store


def parser():
    root = argparse.ArgumentParser(prog="acorn", description="A toy key-value store")
    root.add_argument("folder", help="where the store is kept")
    commands = root.add_subparsers(dest="command", required=True)
    put = commands.add_parser("put", help="set the value of a key")
    put.add_argument("key")
    put.add_argument("value")
    for name in ("get", "delete"):
        commands.add_parser(name, help=f"{name} one key").add_argument("key")
    commands.add_parser("keys", help="list all keys")
    commands.add_parser("compact", help="drop dead records")
    return root


def main(arguments=None):
    options = parser().parse_args(arguments)
    with Store.open(options.folder) as store:
        if options.command == "put":
            store.put(options.key, options.value)
            store.sync()
        elif options.command == "get":
            value = store.get(options.key)
            if value is None:
                print(f"there is no key {options.key}", file=sys.stderr)
                return 1
            print(value)
        elif options.command == "delete":
            store.delete(options.key)
            store.sync()
        elif options.command == "keys":
            print("\n".join(store.keys()))
        else:
            # TODO: say how many bytes were won, not only how many records.
            print(f"{store.compact()} records dropped")
    return 0


if __name__ == "__main__":
    sys.exit(main())
