import { limits, type SessionListItem } from '@concierge/contract';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { toFileName, toMarkdown } from '../../../src/chat/export-conversation.ts';
import type { GatewayClient } from '../../../src/chat/gateway-client.ts';
import { Button } from '../parts/button.tsx';
import { ConfirmDialog, Dialog } from '../parts/confirm-dialog.tsx';
import { TextField } from '../parts/fields.tsx';
import { saveAs } from '../parts/save-as.ts';
import { useExplain, useWords } from '../words/words.tsx';
import { askAnew } from '../parts/use-api.tsx';

interface SessionDialogProps {
  readonly gateway: GatewayClient;
  readonly item: SessionListItem;
  readonly onClose: () => void;
}

interface LabelDialogProps extends SessionDialogProps {
  readonly mayWrite: boolean;
  readonly onChanged: () => void;
}

/** Renames a conversation, pins it, and saves it as a file. */
export function LabelDialog({ gateway, item, mayWrite, onClose, onChanged }: LabelDialogProps): ReactNode {
  const { chat, parts } = useWords();
  const explain = useExplain();
  const words = chat.list;
  const queries = useQueryClient();
  const [title, setTitle] = useState(item.title);
  const [pinned, setPinned] = useState(item.pinned);
  const change = useMutation({
    mutationFn: async () => gateway.labelSession(item.id, { title: title.trim() === '' ? null : title.trim(), pinned }),
    onSuccess: () => {
      onChanged();
      void askAnew(queries, { queryKey: ['sessions'] });
    },
  });
  // Closed meanwhile, it closes none that has been opened since.
  const save = (): void => change.mutate(undefined, { onSuccess: onClose });
  const saving = useMutation({
    mutationFn: async (format: 'md' | 'json') => {
      const session = await gateway.readWholeSession(item.id);
      const headings = { you: chat.turn.you, agent: chat.turn.agent, person: chat.turn.person };
      const text = format === 'md' ? toMarkdown(session, headings) : `${JSON.stringify(session, undefined, 2)}\n`;
      const type = format === 'md' ? 'text/markdown' : 'application/json';
      saveAs(new Blob([text], { type }), toFileName(session.title, format));
    },
  });
  const failure: unknown = change.error ?? saving.error;
  const problem = failure === null ? null : explain(failure);
  const buttons = (
    <>
      <Button onClick={onClose}>{parts.cancel}</Button>
      <Button tone="primary" disabled={change.isPending || !mayWrite} onClick={save}>
        {change.isPending ? words.saving : words.save}
      </Button>
    </>
  );
  return (
    <Dialog title={words.renameTitle} buttons={buttons} error={problem} onClose={onClose}>
      <TextField
        label={words.name}
        help={words.nameHelp}
        maxLength={limits.sessionTitleMaxCharacters}
        value={title}
        readOnly={!mayWrite}
        onChange={setTitle}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && mayWrite && !event.nativeEvent.isComposing) save();
        }}
      />
      <label className="mt-3 flex items-center gap-2 text-foreground">
        <input
          type="checkbox"
          className="accent-primary"
          checked={pinned}
          disabled={!mayWrite}
          onChange={({ target }) => setPinned(target.checked)}
        />
        {words.pin}
      </label>
      <div className="mt-4 flex flex-wrap gap-2 border-t pt-4 text-foreground">
        <Button disabled={saving.isPending} onClick={() => saving.mutate('md')}>
          {words.exportMarkdown}
        </Button>
        <Button disabled={saving.isPending} onClick={() => saving.mutate('json')}>
          {words.exportJson}
        </Button>
      </div>
    </Dialog>
  );
}

/** Deletes a conversation, after asking. */
export function DeleteSession({ gateway, item, onClose, onDeleted }: SessionDialogProps & { readonly onDeleted: () => void }): ReactNode {
  const words = useWords().chat.list;
  const explain = useExplain();
  const queries = useQueryClient();
  const removal = useMutation({
    mutationFn: async () => gateway.deleteSession(item.id),
    onSuccess: () => {
      onDeleted();
      void askAnew(queries, { queryKey: ['sessions'] });
    },
  });
  return (
    <ConfirmDialog
      title={words.deleteTitle}
      action={removal.isPending ? words.deleting : words.delete}
      busy={removal.isPending}
      error={removal.isError ? explain(removal.error) : null}
      // Closed meanwhile, it closes none that has been opened since.
      onConfirm={() => removal.mutate(undefined, { onSuccess: onClose })}
      onCancel={onClose}
    >
      <p>{words.deleteText(item.title === '' ? words.untitled : item.title, item.messageCount)}</p>
    </ConfirmDialog>
  );
}
