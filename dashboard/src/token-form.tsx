import type { VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

interface TokenFormProps {
  /** Whether the service has refused a token. */
  readonly rejected: boolean;
  readonly onToken: (token: string) => void;
}

export function TokenForm({ rejected, onToken }: TokenFormProps): VNode {
  const input = useRef<HTMLInputElement>(null);
  const [problem, setProblem] = useState(rejected ? 'This token was not accepted.' : '');
  useEffect(() => input.current?.focus(), []);
  const submit = (event: Event): void => {
    event.preventDefault();
    const token = input.current?.value.trim() ?? '';
    if (/^[\x21-\x7e]+$/.test(token)) onToken(token);
    else setProblem(token === '' ? 'Enter the token first.' : 'A token has no spaces and no special characters.');
  };
  return (
    <main class="lock">
      <form class="card" onSubmit={submit}>
        <h1>Access token needed</h1>
        <p>This machine requires a token. Ask its administrator.</p>
        <label for="token">Token</label>
        <input ref={input} id="token" type="password" autocomplete="off" aria-describedby="token-problem" aria-invalid={problem !== ''} />
        <p id="token-problem" class="problem" role="alert">
          {problem}
        </p>
        <button type="submit">Show health</button>
        <p class="muted">It is kept until this browser tab is closed.</p>
      </form>
    </main>
  );
}
