"""What a student learns from a teacher: losses, teachers, students."""
