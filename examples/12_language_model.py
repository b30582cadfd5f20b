"""A tuning run in which a language model proposes; the model is a server on this machine that answers from a record.

Any endpoint of OpenAI's chat-completions protocol does as well: set the three variables to yours (docs/llm.md).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

#: What the model says when it is asked for another tiling program of ``add``; about everything else it passes.
ANSWER = """Few cores: a launch pays for each, and 128 KiB are little work.

```cpp op_host/add.cpp
<<<<<<< SEARCH
  coreNum = std::max<uint64_t>(1, std::min(coreNum, blockNum));
=======
  coreNum = std::max<uint64_t>(1, std::min<uint64_t>(24, blockNum));
>>>>>>> REPLACE
```
"""


class Recorded(BaseHTTPRequestHandler):
    asked = 0

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        question = request["messages"][-1]["content"]
        first = "Change the **tiling program**" in question and Recorded.asked == 0
        Recorded.asked += first
        text = ANSWER if first else "PASS: nothing better comes to mind."
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": len(question) // 4, "completion_tokens": len(text) // 4, "total_tokens": 0}
        body = {"id": "1", "object": "chat.completion", "created": 1, "model": request["model"], "choices": [choice]}
        out = json.dumps({**body, "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(out)))
        self.end_headers()
        self.wfile.write(out)

    def log_message(self, format: str, *arguments: object) -> None:
        """Silent: what counts is what the run says."""


def main() -> None:
    server = HTTPServer(("127.0.0.1", 0), Recorded)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ["ASCENDOPT_LLM_BASE_URL"] = f"http://127.0.0.1:{server.server_port}/v1"
    os.environ["ASCENDOPT_LLM_MODEL"] = "recorded"
    os.environ["ASCENDOPT_LLM_API_KEY"] = "none"
    case = ["--input", "x=float16[128,1024]", "--input", "y=float16[128,1024]", "--proposer", "llm", "--budget", "3"]
    done = subprocess.run([sys.executable, "-m", "ascendopt_tune", "tune", "add", *case, "--retune"], check=False)
    server.shutdown()
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
