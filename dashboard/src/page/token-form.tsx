import type { VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { messages } from '../messages/messages.ts';

interface TokenFormProps {
  /** Whether the service has refused a token. */
  readonly rejected: boolean;
  readonly onToken: (token: string) => void;
}

export function TokenForm({ rejected, onToken }: TokenFormProps): VNode {
  const input = useRef<HTMLInputElement>(null);
  const [problem, setProblem] = useState(rejected ? messages.token.rejected : '');
  useEffect(() => input.current?.focus(), []);
  const submit = (event: Event): void => {
    event.preventDefault();
    const token = input.current?.value.trim() ?? '';
    if (/^[\x21-\x7e]+$/.test(token)) onToken(token);
    else setProblem(token === '' ? messages.token.missing : messages.token.malformed);
  };
  return (
    <main class="lock">
      <form class="card" onSubmit={submit}>
        <h1>{messages.token.title}</h1>
        <p>{messages.token.about}</p>
        <label for="token">{messages.token.label}</label>
        <input ref={input} id="token" type="password" autocomplete="off" aria-describedby="token-problem" aria-invalid={problem !== ''} />
        <p id="token-problem" class="problem" role="alert">
          {problem}
        </p>
        <button type="submit">{messages.token.submit}</button>
        <p class="muted">{messages.token.kept}</p>
      </form>
    </main>
  );
}
