"""Keeps a shopping list; run it twice to see that it remembers."""

from acorn import Store

with Store.open("shopping-list") as store:
    visits = int(store.get("visits", "0")) + 1
    store.put("visits", str(visits))
    store.put(f"item-{visits}", "apples")
    store.sync()
    print(f"visit {visits}, on the list: {', '.join(store.keys())}")
