"""Android devices with Google's services, over FCM HTTP v1 with a service account."""
