/* A page that was opened from a folder may start no worker, which the search is. There it runs in a hidden frame. */
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(address) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      this.inside = frame.contentWindow
      this.inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      const script = this.inside.document.createElement("script")
      this.loaded = new Promise(resolve => script.addEventListener("load", resolve))
      script.src = new URL(address, location.href)
      this.inside.document.body.append(script)
    }

    postMessage(data) {
      this.loaded.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })))
    }
  }
  window.Worker = window.IFrameWorker  // by this name the search knows that it is in a frame
}
