import type { ReactNode } from 'react';

interface IconProps {
  readonly className?: string;
}

function icon(shape: ReactNode): (props: IconProps) => ReactNode {
  return ({ className = 'size-4' }) => (
    <svg
      viewBox="0 0 24 24"
      className={className}
      fill="none"
      stroke="currentColor"
      strokeWidth={2}
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      {shape}
    </svg>
  );
}

export const StaffIcon = icon(
  <>
    <circle cx="12" cy="8" r="4" />
    <path d="M4 21a8 8 0 0 1 16 0" />
  </>,
);
export const PlusIcon = icon(<path d="M12 5v14M5 12h14" />);
export const CloseIcon = icon(<path d="M18 6 6 18M6 6l12 12" />);
export const MenuIcon = icon(<path d="M4 6h16M4 12h16M4 18h16" />);
export const SendIcon = icon(<path d="M12 19V5M5 12l7-7 7 7" />);
export const StopIcon = icon(<rect x="6" y="6" width="12" height="12" rx="2" fill="currentColor" />);
export const ClipIcon = icon(
  <path d="m21.4 11.1-9.2 9.1a6 6 0 0 1-8.5-8.4l8.6-8.6a4 4 0 1 1 5.6 5.7l-8.5 8.5a2 2 0 0 1-2.9-2.8l8.5-8.5" />,
);
export const TrashIcon = icon(
  <path d="M3 6h18M8 6V4a1 1 0 0 1 1-1h6a1 1 0 0 1 1 1v2M19 6l-1 14a1 1 0 0 1-1 1H7a1 1 0 0 1-1-1L5 6M10 11v6M14 11v6" />,
);
export const CopyIcon = icon(
  <>
    <rect x="9" y="9" width="12" height="12" rx="2" />
    <path d="M5 15H4a1 1 0 0 1-1-1V4a1 1 0 0 1 1-1h10a1 1 0 0 1 1 1v1" />
  </>,
);
export const PencilIcon = icon(<path d="M4 20h4L19 9l-4-4L4 16ZM13 7l4 4" />);
export const ForkIcon = icon(<path d="M6 3v12M6 9a6 6 0 0 0 6 6h6M14 11l4 4-4 4" />);
export const PinIcon = icon(<path d="M9 3h6l-1 6 3 4H7l3-4ZM12 13v8" />);
export const MoreIcon = icon(<path d="M5 12h.1M12 12h.1M19 12h.1" />);
export const CheckIcon = icon(<path d="m5 13 4 4L19 7" />);
export const AlertIcon = icon(
  <>
    <circle cx="12" cy="12" r="9" />
    <path d="M12 7.5v5.5M12 16.4v.1" />
  </>,
);
export const ChevronIcon = icon(<path d="m9 6 6 6-6 6" />);
export const DownIcon = icon(<path d="M12 5v14M5 12l7 7 7-7" />);
export const RetryIcon = icon(<path d="M3 12a9 9 0 1 0 3-6.7L3 8M3 3v5h5" />);
export const SignOutIcon = icon(<path d="M9 21H5a1 1 0 0 1-1-1V4a1 1 0 0 1 1-1h4M16 17l5-5-5-5M21 12H9" />);
export const SunIcon = icon(
  <>
    <circle cx="12" cy="12" r="4" />
    <path d="M12 2v2M12 20v2M4.9 4.9l1.4 1.4M17.7 17.7l1.4 1.4M2 12h2M20 12h2M4.9 19.1l1.4-1.4M17.7 6.3l1.4-1.4" />
  </>,
);
export const MoonIcon = icon(<path d="M20.5 14.5A8.5 8.5 0 0 1 9.5 3.5a8.5 8.5 0 1 0 11 11Z" />);
export const DeviceIcon = icon(
  <>
    <rect x="3" y="4" width="18" height="12" rx="2" />
    <path d="M8 20h8M12 16v4" />
  </>,
);
export const FileIcon = icon(<path d="M14 3H6a1 1 0 0 0-1 1v16a1 1 0 0 0 1 1h12a1 1 0 0 0 1-1V8ZM14 3v5h5" />);
export const ImageIcon = icon(
  <>
    <rect x="3" y="4" width="18" height="16" rx="2" />
    <path d="m4 17 5-5 4 4 3-3 4 4M9 9h.01" />
  </>,
);
export const ExternalIcon = icon(<path d="M14 4h6v6M20 4l-9 9M18 14v5a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1V7a1 1 0 0 1 1-1h5" />);
export const SearchIcon = icon(
  <>
    <circle cx="11" cy="11" r="7" />
    <path d="m21 21-4.5-4.5" />
  </>,
);
export const ChatIcon = icon(<path d="M21 12a8 8 0 0 1-8 8H4l2-3.5A8 8 0 1 1 21 12Z" />);
export const PulseIcon = icon(<path d="M3 12h4l3-8 4 16 3-8h4" />);
export const ClockIcon = icon(
  <>
    <circle cx="12" cy="12" r="9" />
    <path d="M12 7v5l3 2" />
  </>,
);
export const WorkerIcon = icon(
  <>
    <rect x="3" y="4" width="18" height="7" rx="2" />
    <rect x="3" y="13" width="18" height="7" rx="2" />
    <path d="M7 7.5h.1M7 16.5h.1" />
  </>,
);
export const EnvelopeIcon = icon(
  <>
    <rect x="3" y="5" width="18" height="14" rx="2" />
    <path d="m3 8 9 6 9-6" />
  </>,
);
export const InboxIcon = icon(<path d="M4 5h16v14H4ZM4 13h5l1 2h4l1-2h5" />);
export const BookIcon = icon(<path d="M5 4h12a2 2 0 0 1 2 2v14H7a2 2 0 0 1-2-2ZM5 18a2 2 0 0 1 2-2h12M9 8h6" />);
export const BuildingIcon = icon(<path d="M5 21V4h9v17M14 10h5v11M3 21h18M8.5 8h2M8.5 12h2M8.5 16h2" />);
export const HeartIcon = icon(<path d="M12 20S4 15 4 9a4 4 0 0 1 8-1 4 4 0 0 1 8 1c0 6-8 11-8 11Z" />);
export const ListIcon = icon(<path d="M8 6h13M8 12h13M8 18h13M3.5 6h.1M3.5 12h.1M3.5 18h.1" />);
export const SpinnerIcon = ({ className = 'size-4' }: IconProps): ReactNode => (
  <svg viewBox="0 0 24 24" className={`${className} animate-spin`} fill="none" stroke="currentColor" strokeWidth={2.5} aria-hidden="true">
    <path d="M12 3a9 9 0 1 1-9 9" strokeLinecap="round" />
  </svg>
);
export const LogoIcon = ({ className = 'size-6' }: IconProps): ReactNode => (
  <svg viewBox="0 0 32 32" className={className} aria-hidden="true">
    <rect width="32" height="32" rx="8" fill="var(--primary)" />
    <path
      d="M6 22h20M8 22a8 8 0 0 1 16 0M16 14v-3M14 11h4"
      fill="none"
      stroke="var(--primary-foreground)"
      strokeWidth="2.4"
      strokeLinecap="round"
    />
  </svg>
);
