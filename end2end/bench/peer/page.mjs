// A page with nothing but Streamdown, as its documentation says to use it for a text that grows.

import { createElement, useEffect, useState } from "react";
import { createRoot } from "react-dom/client";
import { Streamdown } from "streamdown";

function Reply() {
  const [text, setText] = useState("");
  useEffect(() => {
    globalThis.__give = setText;
  }, []);
  return createElement(Streamdown, null, text);
}

createRoot(document.getElementById("root")).render(createElement(Reply));
