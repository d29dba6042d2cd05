// Lets something happen once each animation frame, and says what the page's main thread did for it.

/* Runs in the page before anything else. */
function pace() {
  /** Calls `give` with each number from `from` up to `end`, one each animation frame. */
  globalThis.__pace = (from, end, give) =>
    new Promise((done) => {
      const tasks = [];
      const observer = new PerformanceObserver((list) => tasks.push(...list.getEntries().map((task) => task.duration)));
      observer.observe({ type: "longtask" });
      let next = from;
      let last = performance.now();
      let gap = 0;
      const start = last;
      const step = () => {
        const now = performance.now();
        gap = Math.max(gap, now - last);
        last = now;
        if (next < end) {
          give(next);
          next += 1;
          requestAnimationFrame(step);
          return;
        }
        // The last frame's own work, and the observer's entries, come after it.
        setTimeout(() => {
          observer.disconnect();
          done({ seconds: (last - start) / 1000, gap, tasks, longest: Math.max(0, ...tasks) });
        }, 300);
      };
      requestAnimationFrame(step);
    });
}

export class Pace {
  /** Must be made before the page is opened. */
  static async of(page) {
    await page.addInitScript(pace);
    const session = await page.context().newCDPSession(page);
    // CPU time of the page's main thread: what else the machine does is not counted.
    await session.send("Performance.enable", { timeDomain: "threadTicks" });
    return new Pace(session);
  }

  constructor(session) {
    this.session = session;
  }

  async throttle(rate) {
    await this.session.send("Emulation.setCPUThrottlingRate", { rate });
  }

  /** Seconds that the page's main thread has worked, and the parts of it in script, style and layout. */
  async #work() {
    const { metrics } = await this.session.send("Performance.getMetrics");
    const value = (name) => metrics.find((metric) => metric.name === name)?.value ?? NaN;
    return {
      task: value("TaskDuration"),
      script: value("ScriptDuration"),
      style: value("RecalcStyleDuration"),
      layout: value("LayoutDuration"),
    };
  }

  /** Adds the work of the page's main thread to what `play` gives. */
  async measure(play) {
    const before = await this.#work();
    const played = await play();
    const after = await this.#work();
    const used = Object.fromEntries(Object.keys(after).map((name) => [name, after[name] - before[name]]));
    return { ...played, ...used };
  }
}
