// A browser page that is watched: what goes wrong in it fails the test.

export class Viewer {
  constructor(context, page, origins) {
    this.context = context;
    this.page = page;
    this.troubles = [];
    this.notes = [];
    page.on("console", (message) => {
      const words = `console ${message.type()}: ${message.text()} (${message.location().url})`;
      if (message.type() === "error") this.troubles.push(words);
      else if (message.type() === "warning") this.notes.push(words);
    });
    page.on("pageerror", (error) => this.troubles.push(`page error: ${error.stack ?? error}`));
    page.on("crash", () => this.troubles.push("the page crashed"));
    page.on("requestfailed", (request) => {
      const why = request.failure()?.errorText ?? "";
      // What a reload or a click on a link breaks off is no failure.
      if (why !== "net::ERR_ABORTED") this.troubles.push(`request failed: ${request.url()} ${why}`);
    });
    page.on("request", (request) => {
      const url = new URL(request.url());
      if (/^(https?|wss?):$/.test(url.protocol) && !origins.has(url.host)) {
        this.troubles.push(`a request left the origin: ${request.url()}`);
      }
    });
    page.on("websocket", (socket) => {
      const { host } = new URL(socket.url());
      if (!origins.has(host)) this.troubles.push(`a socket left the origin: ${socket.url()}`);
    });
    page.on("dialog", (dialog) => {
      this.troubles.push(`a dialog opened: ${dialog.message()}`);
      void dialog.dismiss();
    });
  }

  /** A policy violation is said on the console, whatever the browser says by itself. */
  static async open(browser, origins, options) {
    const context = await browser.newContext(options);
    context.setDefaultTimeout(20_000);
    if (options.javaScriptEnabled !== false) {
      await context.addInitScript(() => {
        document.addEventListener("securitypolicyviolation", (event) => {
          console.error(`policy violation: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
        });
      });
    }
    return new Viewer(context, await context.newPage(), origins);
  }
}
